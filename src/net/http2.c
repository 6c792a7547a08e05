#include "net/stream.h"

static Err http2_open(Stream *s) {
    (void)s;
    return err_set(ERR_UNSUPPORTED, "HTTP/2 is not there yet");
}

const StreamKind stream_http2 = {.bytes = sizeof(Stream), .open = http2_open};
