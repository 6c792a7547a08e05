// RestCodec: decompresses and decodes the body of a REST inference, encodes its response.
#include "base/err.h"
#include "serve/rest/rest_int.h"

// Estimated nanoseconds: per byte of JSON, per byte of binary data, per element of a response. Of a
// compressed body only a bound is known.
enum { JSON_BYTES_NS = 2, BINARY_BYTES = 2, PACKED_NS = 1000000 };
enum { NUMBER_NS = 40, DOUBLE_NS = 150, TEXT_NS = 60 };

static Err decode(InferCall *call) {
    const InferBody *b = &call->body;
    if (b->packing != INFLATE_NONE) TRY(infer_body_unpack(call));
    return infer_json_decode(b->at, b->len, b->header, &call->arena, &call->request);
}

static TimeNs decode_ns(const InferCall *call) {
    const InferBody *b = &call->body;
    size_t           json = b->header == SIZE_MAX ? b->len : b->header;
    if (b->packing != INFLATE_NONE) return PACKED_NS + (TimeNs)b->len * JSON_BYTES_NS;
    return (TimeNs)(json * JSON_BYTES_NS + (b->len - json) / BINARY_BYTES);
}

// pieces[0] is not used: a REST response has nothing in front of its JSON.
static Err encode(InferCall *call) {
    call->pieces = arena_try_new(&call->arena, struct iovec, EXCHANGE_PIECES);
    if (call->pieces == NULL) return err_set(ERR_LIMIT, "out of memory for the response");
    return infer_json_encode(&call->response, call->max_response, &call->arena, call->pieces,
                             &call->n_pieces, &call->header);
}

static TimeNs tensor_ns(const Tensor *t, bool binary) {
    int64_t each = t->dtype == DT_F64 ? DOUBLE_NS : t->dtype == DT_STR ? TEXT_NS : NUMBER_NS;
    TimeNs  ns = binary && t->dtype != DT_STR ? 0 : tensor_count(t) * each;
    for (int64_t i = 0; t->dtype == DT_STR && i < tensor_count(t) && ns < PACKED_NS; i++)
        ns += (TimeNs)((const Str *)t->data)[i].len;
    return ns;
}

static TimeNs encode_ns(const InferCall *call) {
    TimeNs ns = 0;
    for (uint32_t i = 0; i < call->response.n; i++)
        ns += tensor_ns(&call->response.tensors[i], call->response.binary[i]);
    return ns;
}

const InferCodec rest_codec = {
    .decode = decode, .encode = encode, .decode_ns = decode_ns, .encode_ns = encode_ns};
