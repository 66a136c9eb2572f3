import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import org.gephi.filters.plugin.attribute.AttributeEqualBuilder.EqualStringFilter;
import org.gephi.graph.api.*;
import org.gephi.io.importer.api.*;
import org.gephi.io.processor.plugin.DefaultProcessor;
import org.gephi.project.api.*;
import org.openide.util.Lookup;

/** Imports GEXF files as Gephi does, one for each line of the input (FILE, then intervals, all
 *  tab-separated; among these, COLUMN=REGEX sets a filter of edges), and prints of each,
 *  tab-separated too, each issue of the import report ("issue", level, message), whether the graph
 *  is dynamic ("dynamic", true), and for each interval ("interval", i, nodes, edges) what the
 *  timeline would show, with the edges that the filter leaves; then "end".
 *  Run: java -Djava.awt.headless=true -cp gephi-toolkit-all.jar Check.java */
public class Check {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] none) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            check(line.split("\t"));
            print("end");
        }
    }

    private static void check(String[] arguments) throws Exception {
        ProjectController projects = Lookup.getDefault().lookup(ProjectController.class);
        projects.newProject();
        ImportController importer = Lookup.getDefault().lookup(ImportController.class);
        Container container = importer.importFile(new File(arguments[0]));
        container.closeLoader();
        report(container.getReport()); // Processing empties it.
        DefaultProcessor processor = new DefaultProcessor();
        importer.process(container, processor, projects.getCurrentWorkspace());
        if (processor.getReport() != null) report(processor.getReport());
        GraphModel model = Lookup.getDefault().lookup(GraphController.class).getGraphModel();
        print("dynamic", model.isDynamic());
        for (Column column : model.getNodeTable()) print("node column", column.getId(), column.getTypeClass().getSimpleName());
        for (Column column : model.getEdgeTable()) print("edge column", column.getId(), column.getTypeClass().getSimpleName());
        EqualStringFilter<Edge> filter = null;
        for (int i = 1; i < arguments.length; i++) {
            if (arguments[i].contains("=")) {
                String[] parts = arguments[i].split("=", 2);
                filter = new EqualStringFilter.Edge(model.getEdgeTable().getColumn(parts[0]));
                filter.setPattern(parts[1]);
                filter.setUseRegex(true);
                continue;
            }
            int interval = Integer.parseInt(arguments[i]);
            // Strictly inside the interval: Gephi's bounds are inclusive.
            Interval middle = new Interval(interval + .25, interval + .75);
            GraphView view = model.createView(true, true);
            Graph graph = model.getGraph(view);
            graph.addAllNodes(model.getNodeTimeIndex().get(middle).toCollection());
            graph.addAllEdges(model.getEdgeTimeIndex().get(middle).toCollection());
            model.setTimeInterval(view, middle); // The values that a filter sees are those of it.
            if (filter != null) {
                filter.init(graph);
                for (Edge edge : graph.getEdges().toArray()) if (!filter.evaluate(graph, edge)) graph.removeEdge(edge);
            }
            print("interval", interval, graph.getNodeCount(), graph.getEdgeCount());
            model.destroyView(view);
        }
        projects.closeCurrentProject();
    }

    private static void report(Report report) {
        for (Iterator<Issue> issues = report.getIssues(1 << 20); issues.hasNext(); ) {
            Issue issue = issues.next();
            print("issue", issue.getLevel(), issue.getMessage().replaceAll("\\s+", " "));
        }
    }

    private static void print(Object first, Object... rest) {
        StringBuilder line = new StringBuilder(first.toString());
        for (Object word : rest) line.append('\t').append(word);
        OUT.println(line);
    }
}
