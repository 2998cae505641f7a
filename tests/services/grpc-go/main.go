// The test service of gRPC's interoperability cases, as grpc-go has it. By hand: go run . -port 50051
package main

import (
	"flag"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
)

func main() {
	port := flag.Int("port", 0, "port of 127.0.0.1; a free one by default")
	age := flag.Duration("max-age", 0, "how long a connection lives; for ever by default")
	flag.Parse()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: *age}))
	testgrpc.RegisterTestServiceServer(server, interop.NewTestServer())
	fmt.Println(listener.Addr())
	log.Fatal(server.Serve(listener))
}
