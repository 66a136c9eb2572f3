#!/usr/bin/env bash
# Reports a peer to a collector, once per interval:
#
#   report.sh URL[,URL]... PEER COMMAND...
#
# COMMAND prints the fields of a report as JSON, such as {"neighbors": ["b"], "topics": ["news"]}.
# TOKEN_FILE names a file with the token `report`; SSL_CERT_FILE one with the authority to trust.
# Several URLs are those of the collectors of one run: if one does not answer, the next one is asked.
# While no collector answers, the last 1,000 reports wait. Needs bash 4.4 and curl.
set -euo pipefail

IFS=, read -ra urls <<<"$1"
peer=$2
shift 2
most=1000 waiting=() pause=1

# ask METHOD PATH [BODY]: sets `status` (000 = no answer) and `answer`.
ask() {
    local text options=(--silent --show-error --max-time 20 --write-out '\n%{http_code}')
    [[ -z ${SSL_CERT_FILE-} ]] || options+=(--cacert "$SSL_CERT_FILE")
    [[ -z ${3-} ]] || options+=(--header 'Content-Type: application/x-ndjson' --data-binary "$3")
    if [[ -z ${TOKEN_FILE-} ]]; then
        text=$(curl "${options[@]}" --request "$1" "${urls[0]}$2" 2>&1) || true
    else # its header comes from standard input, so no process list shows the token
        text=$(curl "${options[@]}" --request "$1" --header @- "${urls[0]}$2" 2>&1 \
            <<<"Authorization: Bearer $(<"$TOKEN_FILE")") || true
    fi
    answer=${text%$'\n'*} status=${text##*$'\n'}
    # Not by curl itself, which would also complain where a signal ends this script.
    [[ $status != 000 ]] || echo "${answer%$'\n'}" >&2
}

ask_next() { urls=("${urls[@]:1}" "${urls[0]}"); }

number() { sed -n "s/.*\"$1\": *\([0-9][0-9]*\).*/\1/p" <<<"$answer"; }

fail() {
    echo "report.sh: the collector refuses with $1: ${answer:0:500}" >&2
    exit 1
}

last=-1
while true; do
    ask GET ""
    case $status in
    200) ;;
    401 | 403 | 404) fail "$status" ;;
    *)
        echo "report.sh: ${urls[0]} does not answer ($status); trying again in $pause s" >&2
        ask_next
        sleep "$pause"
        pause=$((pause < 15 ? pause * 2 : 30))
        continue
        ;;
    esac
    now=$(number now_us) length=$(number interval_us)
    interval=$((now / length))
    if ((interval > last)); then
        if fields=$("$@" | tr '\n' ' '); then
            waiting+=("{\"format\": \"vizpub.report/1\", \"peer\": \"$peer\", \"interval\": $interval, ${fields#"{"}")
        else
            echo "report.sh: the command failed, so interval $interval has no report" >&2
        fi
        if ((${#waiting[@]} > most)); then waiting=("${waiting[@]: -most}"); fi
        last=$interval
    fi
    if ((${#waiting[@]})); then
        ask POST /reports "$(printf '%s\n' "${waiting[@]}")"
        case $status in
        202)
            waiting=() pause=1
            [[ $(number refused) == 0 ]] || echo "$answer" >&2
            ;;
        401 | 403 | 404) fail "$status" ;;
        000 | 408 | 429 | 5*)
            echo "report.sh: ${#waiting[@]} reports wait ($status)" >&2
            ask_next
            ;;
        *)
            echo "report.sh: refused with $status: ${answer:0:500}" >&2
            waiting=()
            ;;
        esac
    fi
    # Until a tenth of the next interval is over.
    rest=$(((interval + 1) * length + length / 10 - now))
    sleep "$((rest / 1000000)).$(printf '%06d' $((rest % 1000000)))"
done
