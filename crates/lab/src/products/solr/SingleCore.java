// Starts one Solr from its jars, with the cores in its home: the project's jars come without a program. It is compiled by
// the lab before the first start.
//
// Arguments: the home, the address at which it listens, the port.

import java.lang.reflect.Field;
import org.apache.solr.embedded.JettyConfig;
import org.apache.solr.embedded.JettySolrRunner;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

public final class SingleCore {
    public static void main(String[] arguments) throws Exception {
        JettyConfig config = JettyConfig.builder()
            .setContext("/solr")
            .setPort(Integer.parseInt(arguments[2]))
            .useOnlyHttp1(true)
            .stopAtShutdown(true)
            .build();
        JettySolrRunner solr = new JettySolrRunner(arguments[0], config);
        // it would listen at 127.0.0.1, whatever the address
        Field field = JettySolrRunner.class.getDeclaredField("server");
        field.setAccessible(true);
        Server server = (Server) field.get(solr);
        for (Connector connector : server.getConnectors()) {
            ((ServerConnector) connector).setHost(arguments[1]);
        }
        solr.start();
        server.join();
    }
}
