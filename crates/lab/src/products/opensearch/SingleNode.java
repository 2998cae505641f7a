// Starts one node of OpenSearch from its jars: what the distribution's own start does, without its checks of the machine
// and its search for plugins in a folder. It is compiled by the lab before the first start.
//
// Arguments: the folder of the configuration, the folder of the data, and when an index acknowledges a write, "request"
// or "async".

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.opensearch.Version;
import org.opensearch.common.logging.LogConfigurator;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.index.shard.IndexSettingProvider;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;
import org.opensearch.plugins.PluginInfo;

public final class SingleNode {
    /** The distribution's modules that an index over texts needs, and ours. */
    private static final List<String> PLUGINS = List.of(
        "org.opensearch.transport.Netty4ModulePlugin",
        "org.opensearch.analysis.common.CommonAnalysisModulePlugin",
        "org.opensearch.index.mapper.MapperExtrasModulePlugin",
        "org.opensearch.index.reindex.ReindexModulePlugin",
        "org.opensearch.join.ParentJoinModulePlugin",
        "org.opensearch.painless.PainlessModulePlugin",
        "org.opensearch.script.expression.ExpressionModulePlugin",
        Acknowledges.class.getName());

    private static String durability;

    /** New indexes acknowledge as the scenario says; a node's configuration has no setting for that. */
    public static final class Acknowledges extends Plugin {
        @Override
        public Collection<IndexSettingProvider> getAdditionalIndexSettingProviders() {
            return List.of(new IndexSettingProvider() {
                @Override
                public Settings getAdditionalIndexSettings(String index, boolean isStream, Settings wanted) {
                    return Settings.builder().put("index.translog.durability", durability).build();
                }
            });
        }
    }

    /** Only who inherits may name plugins that are on the class path. */
    private static final class WithPlugins extends Node {
        WithPlugins(Environment environment, Collection<PluginInfo> plugins) {
            super(environment, plugins, true);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Settings home = Settings.builder().put("path.home", arguments[1]).build();
        durability = arguments[2];
        Environment environment = InternalSettingsPreparer.prepareEnvironment(
            home, Map.of(), Path.of(arguments[0]), () -> "node");
        LogConfigurator.registerErrorListener();
        LogConfigurator.configure(environment);
        List<PluginInfo> plugins = new ArrayList<>();
        for (String name : PLUGINS) {
            plugins.add(new PluginInfo(
                name, "on the class path", "NA", Version.CURRENT, "21", name, null, List.of(), false));
        }
        Node node = new WithPlugins(environment, plugins);
        CountDownLatch closed = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
            } catch (Exception error) {
                error.printStackTrace();
            } finally {
                closed.countDown();
            }
        }));
        node.start();
        closed.await();
    }
}
