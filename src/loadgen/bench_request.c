// Inference requests as REST with binary tensors, REST with JSON tensors, and gRPC.
#include <stdio.h>
#include <string.h>

#include "base/str_buf.h"
#include "base/tensor.h"
#include "loadgen/bench_int.h"
#include "serve/grpc/wire.h"

enum { BODY_BYTES_MAX = 1 << 30 };

static int64_t count_of(const Tensor *t) {
    int64_t n = 1;
    for (int32_t i = 0; i < t->rank; i++) n *= t->dims[i];
    return n;
}

static size_t bytes_of(const Tensor *t) {
    return (size_t)count_of(t) * (t->dtype == DT_STR ? 12 : dtype_size(t->dtype));
}

static void put_number(StrBuf *s, const Tensor *t, int64_t i) {
    if (t->dtype == DT_BOOL)
        str_buf_text(s, tensor_get_i64(t, i) != 0 ? "true" : "false");
    else if (t->dtype == DT_STR)
        str_buf_printf(s, "\"%.8s\"", (const char *)t->data + i * 12 + 4);
    else if (dtype_is_float(t->dtype))
        str_buf_printf(s, "%.9g", tensor_get_f64(t, i));
    else
        str_buf_printf(s, "%lld", (long long)tensor_get_i64(t, i));
}

static void put_input(StrBuf *s, const TensorSpec *in, bool binary) {
    const Tensor *t = &in->type;
    str_buf_text(s, "{\"name\":");
    str_buf_json(s, in->name);
    str_buf_text(s, ",\"shape\":[");
    for (int32_t k = 0; k < t->rank; k++)
        str_buf_printf(s, "%s%lld", k > 0 ? "," : "", (long long)t->dims[k]);
    str_buf_printf(s, "],\"datatype\":\"%s\",", infer_type_name(t->dtype));
    if (binary) {
        str_buf_printf(s, "\"parameters\":{\"binary_data_size\":%zu}}", bytes_of(t));
        return;
    }
    str_buf_text(s, "\"data\":[");
    for (int64_t i = 0, n = count_of(t); i < n; i++) {
        if (i > 0) str_buf_text(s, ",");
        put_number(s, t, i);
    }
    str_buf_text(s, "]}");
}

static void put_parameters(StrBuf *s, const BenchModel *m, bool binary) {
    const char *comma = "";
    if (!binary && m->timeout_us == 0 && m->priority == 0) return;
    str_buf_text(s, "\"parameters\":{");
    if (binary) str_buf_text(s, "\"binary_data_output\":true");
    if (binary) comma = ",";
    if (m->timeout_us > 0) str_buf_printf(s, "%s\"timeout\":%lld", comma, (long long)m->timeout_us);
    if (m->timeout_us > 0) comma = ",";
    if (m->priority > 0) str_buf_printf(s, "%s\"priority\":%lld", comma, (long long)m->priority);
    str_buf_text(s, "},");
}

static Err rest_body(BenchModel *m, bool binary, Arena *a, size_t *json) {
    StrBuf s;
    Str    text;
    str_buf_begin(&s, a, BODY_BYTES_MAX);
    str_buf_text(&s, "{");
    put_parameters(&s, m, binary);
    str_buf_text(&s, "\"inputs\":[");
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        if (i > 0) str_buf_text(&s, ",");
        put_input(&s, &m->inputs[i], binary);
    }
    str_buf_text(&s, "]}");
    *json = s.len;
    for (uint32_t i = 0; i < m->n_inputs && binary; i++)
        str_buf_put(&s, m->inputs[i].type.data, bytes_of(&m->inputs[i].type));
    TRY(str_buf_end(&s, &text));
    m->request.body = (struct iovec){(char *)(uintptr_t)text.at, text.len};
    return ERR_OK;
}

static void put_parameter(WireWriter *o, const char *key, int64_t value) {
    size_t entry = wire_begin(o, 4);
    wire_put_text(o, 1, key);
    size_t inside = wire_begin(o, 2);
    wire_put_uint(o, 2, (uint64_t)value);
    wire_end(o, inside);
    wire_end(o, entry);
}

static Err grpc_body(BenchModel *m, Arena *a) {
    size_t all = 4096;
    for (uint32_t i = 0; i < m->n_inputs; i++) all += bytes_of(&m->inputs[i].type) + 1024;
    if (all > BODY_BYTES_MAX) return err_set(ERR_LIMIT, "a request of more than 1 GiB");
    WireWriter o = wire_writer(a, all + 4096);
    wire_put(&o, "\0\0\0\0", 5);
    wire_put_text(&o, 1, m->name);
    if (m->timeout_us > 0) put_parameter(&o, "timeout", m->timeout_us);
    if (m->priority > 0) put_parameter(&o, "priority", m->priority);
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        const TensorSpec *in = &m->inputs[i];
        size_t            mark = wire_begin(&o, 5);
        wire_put_text(&o, 1, in->name);
        wire_put_text(&o, 2, infer_type_name(in->type.dtype));
        wire_put_packed(&o, 3, in->type.dims, (size_t)in->type.rank);
        wire_end(&o, mark);
    }
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        size_t bytes = bytes_of(&m->inputs[i].type);
        wire_put_tag(&o, 7, WIRE_BYTES);
        wire_put_varint(&o, bytes);
        wire_put(&o, m->inputs[i].type.data, bytes);
    }
    TRY(wire_done(&o));
    uint32_t len = (uint32_t)(o.len - 5);
    for (uint32_t i = 0; i < 4; i++) o.at[1 + i] = (unsigned char)(len >> (24 - 8 * i));
    m->request.body = (struct iovec){o.at, o.len};
    return ERR_OK;
}

static const ExchangeHeader grpc_headers[] = {
    {{"content-type", 12}, {"application/grpc", 16}},
    {{"te", 2}, {"trailers", 8}},
};

static Err rest_headers(BenchModel *m, bool binary, size_t json, Arena *a) {
    ExchangeHeader *h = arena_try_new(a, ExchangeHeader, 2);
    const char     *type = binary ? "application/octet-stream" : "application/json";
    char           *length = arena_printf(a, "%zu", json);
    if (h == NULL) return err_set(ERR_LIMIT, "no memory for headers");
    h[0] = (ExchangeHeader){{"content-type", 12}, {type, strlen(type)}};
    h[1] = (ExchangeHeader){{"inference-header-content-length", 31}, {length, strlen(length)}};
    m->request.headers = h;
    m->request.n_headers = binary ? 2 : 1;
    return ERR_OK;
}

static Err reject_half(const BenchModel *m) {
    for (uint32_t i = 0; i < m->n_inputs; i++)
        if (m->inputs[i].type.dtype == DT_F16 || m->inputs[i].type.dtype == DT_BF16)
            return err_set(
                ERR_ARG,
                "model '%s': input '%s' has half precision, which JSON cannot carry; use "
                "--protocol rest",
                m->name, m->inputs[i].name);
    return ERR_OK;
}

Err bench_make_request(const Bench *b, BenchModel *m, Arena *a) {
    bool   binary = b->protocol == BENCH_REST;
    size_t json = 0;
    m->request.method = "POST";
    if (b->protocol == BENCH_GRPC) {
        m->request.path = "/inference.GRPCInferenceService/ModelInfer";
        m->request.headers = grpc_headers;
        m->request.n_headers = 2;
        return grpc_body(m, a);
    }
    if (!binary) TRY(reject_half(m));
    TRY(rest_body(m, binary, a, &json));
    return rest_headers(m, binary, json, a);
}
