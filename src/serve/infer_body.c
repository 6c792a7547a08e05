// InferBody: the body of an inference, decompressed by the job that decodes it.
#include "base/coroutine.h"
#include "base/err.h"
#include "serve/dispatcher.h"

enum { INFLATE_BYTES = 65536, INFLATE_NS = 100000 };

// Appends to the text at the end of the arena; nothing else is allocated meanwhile.
static Err unpack_more(InferCall *call, size_t *len, bool *done) {
    size_t left = call->max_body - *len, room = left < INFLATE_BYTES ? left + 1 : INFLATE_BYTES;
    size_t made = 0, mark = call->arena.used;
    unsigned char *to = arena_try(&call->arena, room, 1, 1);
    if (to == NULL) return err_set(ERR_LIMIT, "out of memory for the body (`request_mb`)");
    TRY(inflate_step(call->inflate, to, room, &made, done));
    *len += made;
    if (*len > call->max_body)
        return err_set(ERR_LIMIT, "body exceeds %zu bytes after decompression (`body_mb`)",
                       call->max_body);
    arena_rewind(&call->arena, mark + made);
    coroutine_point(INFLATE_NS);
    return ERR_OK;
}

Err infer_body_unpack(InferCall *call) {
    InferBody *b = &call->body;
    size_t     len = 0, header = b->header == SIZE_MAX ? 0 : b->header % TENSOR_ALIGN;
    bool       done = false;
    Str        packed = {(const char *)b->at, b->len};
    TRY(inflate_begin(&call->inflate, b->packing, packed));
    unsigned char *base = arena_try(&call->arena, TENSOR_ALIGN - header, 1, TENSOR_ALIGN);
    if (base == NULL) return err_set(ERR_LIMIT, "out of memory for the body (`request_mb`)");
    while (!done) TRY(unpack_more(call, &len, &done));
    inflate_end(call->inflate);
    call->inflate = NULL;
    b->at = base + TENSOR_ALIGN - header;
    b->len = len;
    b->packing = INFLATE_NONE;
    if (b->header != SIZE_MAX && b->header > len)
        return err_set(ERR_INVALID, "Inference-Header-Content-Length is larger than the body");
    return ERR_OK;
}
