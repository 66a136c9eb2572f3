import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import peersim.config.Configuration;
import peersim.core.CommonState;
import peersim.core.Control;
import peersim.core.Linkable;
import peersim.core.Network;
import peersim.core.Node;

/**
 * A control of PeerSim that writes a report of every node in every interval, for `vizpub ingest`.
 *
 * <pre>
 * control.vizpub VizpubReports
 * control.vizpub.linkable overlay     the protocol whose neighbours are the links
 * control.vizpub.file reports.ndjson
 * control.vizpub.step 1000            the length of an interval; one unit of time is 1 ms
 * control.vizpub.from 999             the end of the first interval
 * control.vizpub.FINAL                at the end of the run
 * </pre>
 *
 * A protocol calls {@link #sent} and {@link #received} for its messages.
 */
public class VizpubReports implements Control {
    private static final Map<Long, List<String>> SENT = new HashMap<>();
    private static final Map<Long, List<String>> RECEIVED = new HashMap<>();
    private final int linkable;
    private final long step;
    private final PrintWriter file;

    public VizpubReports(String prefix) throws IOException {
        linkable = Configuration.getPid(prefix + ".linkable");
        step = Configuration.getLong(prefix + ".step");
        file = new PrintWriter(Configuration.getString(prefix + ".file"), "UTF-8");
        file.printf(
            "{\"format\":\"vizpub.run/1\",\"run\":\"peersim\",\"protocol\":\"%s\",\"seed\":%d,"
                + "\"interval_us\":%d}%n",
            Configuration.getString(prefix + ".protocol", "peersim"),
            Configuration.getLong(CommonState.PAR_SEED), step * 1000);
    }

    /** A node sends a message to others; with hops 0, it publishes it. */
    public static void sent(Node node, String message, String topic, int hops, List<Node> to) {
        add(SENT, node, String.format(
            "{\"message\":\"%s\",\"topic\":\"%s\",\"hops\":%d,\"time_us\":%d,\"to\":%s}",
            message, topic, hops, CommonState.getTime() * 1000, names(to)));
    }

    /** A copy of a message arrives at a node, over so many hops. */
    public static void received(Node node, String message, String topic, int hops, Node from) {
        add(RECEIVED, node, String.format(
            "{\"message\":\"%s\",\"topic\":\"%s\",\"hops\":%d,\"time_us\":%d,\"from\":\"%d\"}",
            message, topic, hops, CommonState.getTime() * 1000, from.getID()));
    }

    /** Report the interval that ends now. */
    public boolean execute() {
        long interval = CommonState.getTime() / step;
        for (int index = 0; index < Network.size(); index++) {
            Node node = Network.get(index);
            if (!node.isUp()) {
                continue;
            }
            Linkable overlay = (Linkable) node.getProtocol(linkable);
            List<Node> neighbours = new ArrayList<>();
            for (int i = 0; i < overlay.degree(); i++) {
                neighbours.add(overlay.getNeighbor(i));
            }
            file.printf(
                "{\"format\":\"vizpub.report/1\",\"peer\":\"%d\",\"interval\":%d,\"neighbors\":%s,"
                    + "\"topics\":[\"all\"],\"sent\":[%s],\"received\":[%s]}%n",
                node.getID(), interval, names(neighbours), taken(SENT, node), taken(RECEIVED, node));
        }
        file.flush();
        return false;
    }

    private static void add(Map<Long, List<String>> events, Node node, String event) {
        events.computeIfAbsent(node.getID(), id -> new ArrayList<>()).add(event);
    }

    private static String taken(Map<Long, List<String>> events, Node node) {
        List<String> mine = events.remove(node.getID());
        return mine == null ? "" : String.join(",", mine);
    }

    private static String names(List<Node> nodes) {
        TreeSet<Long> ids = new TreeSet<>();
        nodes.forEach(node -> ids.add(node.getID()));
        StringBuilder text = new StringBuilder();
        ids.forEach(id -> text.append(text.length() > 0 ? "," : "").append('"').append(id).append('"'));
        return "[" + text + "]";
    }
}
