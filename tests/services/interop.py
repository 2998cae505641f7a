"""The test service of gRPC's interoperability cases, on grpc-python: cart.py serves it."""

import time

import grpc

protos, services = grpc.protos_and_services("interop.proto")
INITIAL, TRAILING = "x-grpc-test-echo-initial", "x-grpc-test-echo-trailing-bin"


def payload(size):
    return protos.Payload(body=bytes(size))


def echo(context):
    told = dict(context.invocation_metadata())
    if INITIAL in told:
        context.send_initial_metadata(((INITIAL, told[INITIAL]),))
    if TRAILING in told:
        context.set_trailing_metadata(((TRAILING, told[TRAILING]),))


def end(asked, context):
    if asked.HasField("response_status"):
        code = next(code for code in grpc.StatusCode if code.value[0] == asked.response_status.code)
        context.abort(code, asked.response_status.message)


class Interop(services.TestServiceServicer):
    def EmptyCall(self, asked, context):
        return protos.Empty()

    def UnaryCall(self, asked, context):
        echo(context)
        end(asked, context)
        if asked.HasField("response_compressed") and not asked.response_compressed.value:
            context.disable_next_message_compression()
        return protos.SimpleResponse(payload=payload(asked.response_size))

    def answers(self, asked, context):
        end(asked, context)
        for wanted in asked.response_parameters:
            time.sleep(wanted.interval_us / 1e6)
            if wanted.HasField("compressed") and not wanted.compressed.value:
                context.disable_next_message_compression()
            yield protos.StreamingOutputCallResponse(payload=payload(wanted.size))

    def StreamingOutputCall(self, asked, context):
        yield from self.answers(asked, context)

    def StreamingInputCall(self, asked, context):
        return protos.StreamingInputCallResponse(aggregated_payload_size=sum(len(one.payload.body) for one in asked))

    def FullDuplexCall(self, asked, context):
        echo(context)
        for one in asked:
            yield from self.answers(one, context)
