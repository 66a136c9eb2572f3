// Peers of a ring that report to a collector of vizpub. Go 1.21 or later, standard library only.
//
//	vizpub live collect lab --no-token --port 8600
//	go run peer.go http://127.0.0.1:8600/v1/runs/lab 10 30
//
// The arguments are the URL of the run, the number of peers and of intervals. VIZPUB_TOKEN holds the
// collector's token, if it has one.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

type report struct {
	Format    string   `json:"format"`
	Peer      string   `json:"peer"`
	Interval  int64    `json:"interval"`
	Seq       int64    `json:"seq"`
	Neighbors []string `json:"neighbors"`
	Topics    []string `json:"topics"`
	Sent      []string `json:"sent"`
	Received  []string `json:"received"`
	Left      bool     `json:"left"`
}

type answer struct {
	Taken   int `json:"taken"`
	Refused int `json:"refused"`
}

func request(method, url string, body []byte) (*http.Response, error) {
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-ndjson")
	if token := os.Getenv("VIZPUB_TOKEN"); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return (&http.Client{Timeout: 30 * time.Second}).Do(request)
}

// send sends lines until the collector has them; it fails if the collector refuses all of them.
func send(url string, lines []byte) (answer, error) {
	for delay := time.Second; ; delay = min(2*delay, 30*time.Second) {
		response, err := request("POST", url+"/reports", lines)
		if err != nil {
			log.Printf("%v; again in %v", err, delay)
			time.Sleep(delay)
			continue
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		switch response.StatusCode {
		case 202:
			var counts answer
			return counts, json.Unmarshal(text, &counts)
		case 408, 429, 502, 503, 504:
			// A report that is sent twice counts once, so it is safe to send again.
			wait := delay
			if s, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
				wait = time.Duration(s) * time.Second
			}
			time.Sleep(wait)
		default:
			return answer{}, fmt.Errorf("%s: %s", response.Status, text)
		}
	}
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: go run peer.go URL PEERS INTERVALS")
	}
	url := os.Args[1]
	peers, _ := strconv.Atoi(os.Args[2])
	intervals, _ := strconv.ParseInt(os.Args[3], 10, 64)

	// All peers count intervals from the run's epoch, by the collector's clock.
	response, err := request("GET", url, nil)
	if err != nil {
		log.Fatal(err)
	}
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode != 200 {
		log.Fatalf("%s: %s", response.Status, text)
	}
	var run struct {
		Header struct {
			IntervalUs int64 `json:"interval_us"`
			NowUs      int64 `json:"now_us"`
		} `json:"header"`
	}
	if err := json.Unmarshal(text, &run); err != nil {
		log.Fatal(err)
	}
	header := run.Header
	first := header.NowUs / header.IntervalUs
	start := time.Now().Add(-time.Duration(header.NowUs%header.IntervalUs) * time.Microsecond)

	for interval := first; interval < first+intervals; interval++ {
		end := time.Duration((interval-first+1)*header.IntervalUs) * time.Microsecond
		time.Sleep(time.Until(start.Add(end)))
		var lines bytes.Buffer
		encoder := json.NewEncoder(&lines) // an object and a newline
		for peer := range make([]struct{}, peers) {
			encoder.Encode(report{
				Format:    "vizpub.report/1",
				Peer:      fmt.Sprintf("peer-%d", peer),
				Interval:  interval,
				Seq:       interval,
				Neighbors: []string{fmt.Sprintf("peer-%d", (peer+1)%peers)},
				Topics:    []string{"news"},
				Sent:      []string{},
				Received:  []string{},
				Left:      interval == first+intervals-1,
			})
		}
		counts, err := send(url, lines.Bytes())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("interval %d: %d taken, %d refused\n", interval, counts.Taken, counts.Refused)
	}
}
