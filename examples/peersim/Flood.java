import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import peersim.config.Configuration;
import peersim.config.FastConfig;
import peersim.core.CommonState;
import peersim.core.Control;
import peersim.core.Linkable;
import peersim.core.Network;
import peersim.core.Node;
import peersim.edsim.EDProtocol;
import peersim.edsim.EDSimulator;
import peersim.transport.Transport;

/** Flooding: a node passes the first copy of a message on to all of its neighbours. */
public class Flood implements EDProtocol {
    private static final String TOPIC = "all";
    private Set<String> seen = new HashSet<>();

    /** A copy of a message; without a sender, it is published. */
    private record Copy(String message, int hops, Node from) {}

    /** Publishes at a random node. */
    public static class Publisher implements Control {
        private final int pid;

        public Publisher(String prefix) {
            pid = Configuration.getPid(prefix + ".protocol");
        }

        public boolean execute() {
            Node node = Network.get(CommonState.r.nextInt(Network.size()));
            EDSimulator.add(0, new Copy("m" + CommonState.getTime(), 0, null), node, pid);
            return false;
        }
    }

    public Flood(String prefix) {}

    public Object clone() {
        return new Flood("");
    }

    public void processEvent(Node node, int pid, Object event) {
        Copy copy = (Copy) event;
        if (copy.from != null) {
            VizpubReports.received(node, copy.message, TOPIC, copy.hops, copy.from);
        }
        if (!seen.add(copy.message)) {
            return;
        }
        Linkable overlay = (Linkable) node.getProtocol(FastConfig.getLinkable(pid));
        Transport transport = (Transport) node.getProtocol(FastConfig.getTransport(pid));
        List<Node> others = new ArrayList<>();
        for (int i = 0; i < overlay.degree(); i++) {
            if (overlay.getNeighbor(i) != copy.from) {
                others.add(overlay.getNeighbor(i));
            }
        }
        VizpubReports.sent(node, copy.message, TOPIC, copy.hops, others);
        for (Node other : others) {
            transport.send(node, other, new Copy(copy.message, copy.hops + 1, node), pid);
        }
    }
}
