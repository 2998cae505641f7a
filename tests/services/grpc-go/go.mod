module interop

go 1.25.0

require google.golang.org/grpc v1.82.1
