"""A cart on grpc-python. By hand: tests/services/serve cart 50051"""

import os
import pathlib
import sys
import time
from concurrent import futures

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

sys.path.insert(0, str(pathlib.Path(__file__).parent))
protos, services = grpc.protos_and_services("cart.proto")
import interop  # noqa: E402


class Cart(services.CartServicer):
    def Add(self, item, context):
        user = dict(context.invocation_metadata()).get("user", "")
        context.send_initial_metadata((("served-by", "cart"), ("place", "before")))
        context.set_trailing_metadata((("cost", str(item.amount)), ("place", "after")))
        left_s = context.time_remaining()
        return protos.Total(total=item.amount, item=item, user=user, left_s=left_s or 0)

    def Watch(self, wish, context):
        for number in range(wish.count):
            time.sleep(wish.after.ToTimedelta().total_seconds())
            yield protos.Item(name=f"item {number}", amount=number)

    def Fill(self, items, context):
        return protos.Total(total=sum(item.amount for item in items))

    def Chat(self, said, context):
        for one in said:
            if one.text == "stop":
                context.abort(grpc.StatusCode.ABORTED, "stopped: 100%, as wished – good bye")
            yield one

    def Fail(self, failure, context):
        context.set_trailing_metadata((("reason", "wished"),))
        code = next(code for code in grpc.StatusCode if code.value[0] == failure.code)
        context.abort(code, failure.words)

    def Wait(self, wish, context):
        time.sleep(wish.after.ToTimedelta().total_seconds())
        return protos.Total()


def serve(port, secure=None, certificate=None, key=None):
    server = grpc.server(futures.ThreadPoolExecutor(32), compression=grpc.Compression.Gzip)
    services.add_CartServicer_to_server(Cart(), server)
    interop.services.add_TestServiceServicer_to_server(interop.Interop(), server)
    told = health.HealthServicer()
    told.set("", health_pb2.HealthCheckResponse.SERVING)
    told.set("shop.Cart", health_pb2.HealthCheckResponse.SERVING)
    if "NO_HEALTH" not in os.environ:
        health_pb2_grpc.add_HealthServicer_to_server(told, server)
    reflection.enable_server_reflection(("shop.Cart", health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    if secure:
        pair = (pathlib.Path(key).read_bytes(), pathlib.Path(certificate).read_bytes())
        server.add_secure_port(f"127.0.0.1:{secure}", grpc.ssl_server_credentials([pair]))
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    serve(*sys.argv[1:])
