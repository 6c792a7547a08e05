#include "model/onnx_proto.h"

#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/tensor.h"
#include "model/onnx_wire.h"

// A small message costs far more memory than wire bytes, packed numbers at most eight times.
enum { BYTES_PER_FIELD = 112, BYTES_PER_BYTE = 8, BYTES_SPARE = 1 << 16 };

typedef struct Budget {
    Arena *arena;
    size_t left;
} Budget;

// Large blocks are weights: they are used where they stand, so they are aligned like tensors.
static void *take(void *self, size_t n) {
    Budget *b = self;
    size_t  align = n >= TENSOR_ALIGN ? TENSOR_ALIGN : _Alignof(max_align_t);
    if (n > b->left) return NULL;
    b->left -= n;
    return arena_try(b->arena, 1, n, align);
}

static void leave(void *self, void *p) {
    (void)self;
    (void)p;
}

Err onnx_unpack(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n, Arena *a,
                void **out) {
    size_t fields = 0;
    TRY(onnx_wire_check(type, bytes, n, &fields));
    Budget             b = {a, n * BYTES_PER_BYTE + fields * BYTES_PER_FIELD + BYTES_SPARE};
    ProtobufCAllocator alloc = {.alloc = take, .free = leave, .allocator_data = &b};
    ProtobufCMessage  *m = protobuf_c_message_unpack(type, &alloc, n, bytes);
    if (m == NULL)
        return err_set(ERR_LIMIT, "%s needs more memory than its %zu bytes may ask for",
                       type->short_name, n);
    *out = m;
    return ERR_OK;
}
