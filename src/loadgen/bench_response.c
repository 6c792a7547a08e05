// Responses by outcome: from the status, and with --check from the outputs.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/tensor.h"
#include "loadgen/bench_int.h"
#include "serve/grpc/wire.h"

static BenchOutcome failed(char *reason, const char *what) {
    (void)snprintf(reason, BENCH_REASON_BYTES, "%s", what);
    return BENCH_FAILED;
}

// The message of the server, on one line.
static BenchOutcome refused(char *reason, const char *what, uint32_t status, const char *text,
                            size_t len) {
    int n = snprintf(reason, BENCH_REASON_BYTES, "%s %u: ", what, status);
    for (size_t i = 0; i < len && n < BENCH_REASON_BYTES - 1; i++)
        reason[n++] = (unsigned char)text[i] < ' ' || text[i] == 127 ? ' ' : text[i];
    reason[n] = '\0';
    return BENCH_FAILED;
}

static bool all_finite(DType type, const unsigned char *bytes, size_t len) {
    size_t  size = dtype_size(type);
    int64_t n = (int64_t)(len / size);
    if (!dtype_is_float(type)) return true;
    for (int64_t i = 0; i < n; i++) {
        union {
            unsigned char bytes[8];
            uint64_t      aligned;
        } one;
        memcpy(one.bytes, bytes + (size_t)i * size, size);
        Tensor t = tensor_of(type, 0, NULL, one.bytes);
        if (!isfinite(tensor_get_f64(&t, 0))) return false;
    }
    return true;
}

static const char *check_numbers(const json_t *data, int depth) {
    size_t  i = 0;
    json_t *v = NULL;
    if (!json_is_array(data)) return "an output without data";
    json_array_foreach(data, i, v) {
        const char *fault = NULL;
        if (json_is_array(v) && depth < TENSOR_MAX_RANK) fault = check_numbers(v, depth + 1);
        if (json_is_null(v) || (json_is_array(v) && depth >= TENSOR_MAX_RANK))
            fault = "an output with a null";
        if (fault != NULL) return fault;
    }
    return NULL;
}

static const char *check_output(const json_t *o, const unsigned char *at, size_t *left) {
    const char   *type = json_string_value(json_object_get(o, "datatype"));
    const json_t *data = json_object_get(o, "data");
    const json_t *size = json_object_get(json_object_get(o, "parameters"), "binary_data_size");
    if (type == NULL || !json_is_array(json_object_get(o, "shape")))
        return "an output without datatype or shape";
    if (data != NULL) return check_numbers(data, 0);
    if (!json_is_integer(size) || json_integer_value(size) < 0 ||
        (uint64_t)json_integer_value(size) > *left)
        return "an output without its bytes";
    size_t len = (size_t)json_integer_value(size);
    *left -= len;
    DType dtype = infer_dtype((Str){type, strlen(type)});
    if (dtype == DT_NONE || (dtype != DT_STR && len % dtype_size(dtype) != 0))
        return "an output of a size that does not fit its type";
    return dtype == DT_STR || all_finite(dtype, at, len) ? NULL : "an output that is not finite";
}

static const char *check_rest(const ClientReply *r) {
    json_t *doc = NULL;
    size_t  i = 0, json = r->json_len == SIZE_MAX ? r->kept : r->json_len, left = r->kept - json;
    json_t *o = NULL;
    if (json_parse("answer", (const char *)r->body, json, &doc) != ERR_OK) return "broken JSON";
    const json_t *outputs = json_object_get(doc, "outputs");
    const char   *fault = json_array_size(outputs) > 0 ? NULL : "no outputs";
    json_array_foreach(outputs, i, o) {
        if (fault == NULL) fault = check_output(o, r->body + r->kept - left, &left);
    }
    json_decref(doc);
    return fault != NULL || left == 0 ? fault : "more bytes than the outputs have";
}

typedef struct ProtoOutputs {
    uint32_t outputs, raw, typed;
    DType    types[INFER_TENSORS];
} ProtoOutputs;

static const char *read_output(WireReader in, ProtoOutputs *seen) {
    WireField f;
    bool      more = true;
    DType     type = DT_NONE;
    while (wire_next(&in, &f, &more) == ERR_OK && more) {
        if (f.number == 2 && f.kind == WIRE_BYTES)
            type = infer_dtype((Str){(const char *)f.at, f.len});
        if (f.number == 5 && f.len > 0) seen->typed++;
    }
    if (more || type == DT_NONE || seen->outputs == INFER_TENSORS)
        return "an output without datatype";
    seen->types[seen->outputs++] = type;
    return NULL;
}

static const char *check_grpc(const ClientReply *r) {
    WireReader   in = wire_reader(r->body + 5, r->kept - 5);
    WireField    f;
    ProtoOutputs seen = {0};
    bool         more = true;
    const char  *fault = NULL;
    while (fault == NULL && wire_next(&in, &f, &more) == ERR_OK && more) {
        if (f.number == 5 && f.kind == WIRE_BYTES) fault = read_output(wire_inside(&in, &f), &seen);
        if (f.number != 6 || f.kind != WIRE_BYTES) continue;
        if (seen.raw == seen.outputs) return "more raw contents than outputs";
        DType type = seen.types[seen.raw++];
        if (type != DT_STR && (f.len % dtype_size(type) != 0 || !all_finite(type, f.at, f.len)))
            fault = "an output that is not finite or not whole";
    }
    if (fault != NULL) return fault;
    if (more) return "a broken message";
    if (seen.outputs == 0) return "no outputs";
    return seen.raw == seen.outputs || seen.typed == seen.outputs ? NULL : "outputs without data";
}

static BenchOutcome classify_grpc(const Bench *b, const ClientReply *r, char *reason) {
    if (r->status != 200) return refused(reason, "HTTP", r->status, "", 0);
    switch (r->grpc) {
    case 0: break;
    case 4: return BENCH_EXPIRED;
    case 8:
    case 14: return BENCH_REJECTED;
    case UINT32_MAX: return failed(reason, "a response without grpc-status");
    default: return refused(reason, "grpc-status", r->grpc, r->message, strlen(r->message));
    }
    if (r->len < 5 || r->kept < 5) return failed(reason, "an empty response");
    size_t said =
        (size_t)r->body[1] << 24 | (size_t)r->body[2] << 16 | (size_t)r->body[3] << 8 | r->body[4];
    if (r->body[0] != 0 || said != r->len - 5)
        return failed(reason, "a response with a wrong length prefix");
    const char *fault = b->check ? check_grpc(r) : NULL;
    return fault == NULL ? BENCH_OK : failed(reason, fault);
}

BenchOutcome bench_classify(const Bench *b, const ClientReply *r, char *reason) {
    if (r->fault != NULL) return failed(reason, r->fault);
    if (b->protocol == BENCH_GRPC) return classify_grpc(b, r, reason);
    if (r->status == 503 || r->status == 429) return BENCH_REJECTED;
    if (r->status == 504 || r->status == 408) return BENCH_EXPIRED;
    if (r->status != 200) return refused(reason, "HTTP", r->status, (const char *)r->body, r->kept);
    if (r->len == 0) return failed(reason, "an empty response");
    if (r->json_len != SIZE_MAX && r->json_len > r->len)
        return failed(reason, "a JSON length beyond the end of the response");
    const char *fault = b->check ? check_rest(r) : NULL;
    return fault == NULL ? BENCH_OK : failed(reason, fault);
}
