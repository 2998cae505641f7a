// Starts a Eureka server from its jars. It is compiled by the lab before the first start. Arguments: its settings, as
// Spring Boot takes them.

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.cloud.netflix.eureka.server.EnableEurekaServer;

@EnableAutoConfiguration
@EnableEurekaServer
public class Registry {
    public static void main(String[] arguments) {
        SpringApplication.run(Registry.class, arguments);
    }
}
