#include "model/onnx_external.h"

#include <unistd.h>

size_t onnx_external_max(void) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (size_t)pages * (size_t)size : (size_t)1 << 32;
}

Err onnx_external_read(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out, size_t bytes) {
    (void)s, (void)p, (void)out, (void)bytes;
    return err_set(ERR_UNSUPPORTED, "external data is not supported yet");
}
