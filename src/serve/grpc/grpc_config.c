// gRPC: a model's configuration in Triton's model_config.proto; trace and log settings.
#include "serve/grpc/grpc_int.h"
#include "serve/server_metadata.h"

// Field numbers of ModelConfig, ModelInput and ModelOutput
enum { CONFIG_NAME = 1, CONFIG_PLATFORM, CONFIG_POLICY, CONFIG_BATCH, CONFIG_INPUT, CONFIG_OUTPUT };
enum { CONFIG_FILE = 8, CONFIG_PARAMETERS = 14, CONFIG_BACKEND = 17, CONFIG_TRANSACTIONS = 19 };
enum { INPUT_NAME = 1, INPUT_TYPE, INPUT_FORMAT, INPUT_DIMS, INPUT_RESHAPE, INPUT_OPTIONAL = 8 };
enum { OUTPUT_NAME = 1, OUTPUT_TYPE, OUTPUT_DIMS, OUTPUT_LABELS, OUTPUT_RESHAPE };
enum { POLICY_LATEST = 1, POLICY_ALL, POLICY_SPECIFIC };

// The batch dimension is left out.
static void put_dims(WireWriter *o, uint32_t field, const Tensor *t, bool batched) {
    if (t->rank > batched)
        wire_put_packed(o, field, t->dims + batched, (size_t)(t->rank - batched));
}

static void put_reshape(WireWriter *o, uint32_t field, const TensorSpec *spec, bool batched) {
    if (!spec->reshaped) return;
    size_t reshape = wire_begin(o, field);
    put_dims(o, 1, &spec->own, batched);
    wire_end(o, reshape);
}

static void put_inputs(WireWriter *o, const ModelInfo *s, bool batched) {
    for (uint32_t i = 0; i < s->signature.n_inputs; i++) {
        const TensorSpec *spec = &s->signature.inputs[i];
        uint32_t          type, format;
        size_t            input = wire_begin(o, CONFIG_INPUT);
        (void)metadata_triton_type(spec->type.dtype, &type);
        (void)metadata_format(s, spec->name, &format);
        wire_put_text(o, INPUT_NAME, spec->name);
        wire_put_uint(o, INPUT_TYPE, type);
        wire_put_uint(o, INPUT_FORMAT, format);
        put_dims(o, INPUT_DIMS, &spec->type, batched);
        put_reshape(o, INPUT_RESHAPE, spec, batched);
        wire_put_uint(o, INPUT_OPTIONAL, spec->optional);
        wire_end(o, input);
    }
}

static void put_outputs(WireWriter *o, const ModelInfo *s, bool batched) {
    for (uint32_t i = 0; i < s->signature.n_outputs; i++) {
        const TensorSpec  *spec = &s->signature.outputs[i];
        const PbtxtTensor *declared = metadata_declared(s, false, spec->name);
        uint32_t           type;
        size_t             output = wire_begin(o, CONFIG_OUTPUT);
        (void)metadata_triton_type(spec->type.dtype, &type);
        wire_put_text(o, OUTPUT_NAME, spec->name);
        wire_put_uint(o, OUTPUT_TYPE, type);
        put_dims(o, OUTPUT_DIMS, &spec->type, batched);
        if (declared != NULL && declared->labels != NULL)
            wire_put_text(o, OUTPUT_LABELS, declared->labels);
        put_reshape(o, OUTPUT_RESHAPE, spec, batched);
        wire_end(o, output);
    }
}

static void put_policy(WireWriter *o, const ModelInfo *s) {
    PbtxtPolicy policy;
    if (!metadata_version_policy(s, &policy)) return;
    size_t all = wire_begin(o, CONFIG_POLICY);
    size_t choice = wire_begin(o, policy == PBTXT_LATEST_VERSIONS ? POLICY_LATEST
                                  : policy == PBTXT_ALL_VERSIONS  ? POLICY_ALL
                                                                  : POLICY_SPECIFIC);
    if (policy == PBTXT_LATEST_VERSIONS) wire_put_uint(o, 1, (uint64_t)s->config->set.versions);
    if (policy == PBTXT_SPECIFIC_VERSIONS)
        wire_put_packed(o, 1, (const int64_t *)s->config->declared->versions,
                        s->config->declared->n_versions);
    wire_end(o, choice);
    wire_end(o, all);
}

static void put_qos(WireWriter *o, const ModelInfo *s) {
    MetadataRow rows[METADATA_ROWS];
    metadata_qos(s, rows);
    for (uint32_t i = 0; i < METADATA_ROWS; i++) {
        size_t entry = wire_begin(o, CONFIG_PARAMETERS);
        wire_put_text(o, 1, rows[i].key);
        size_t value = wire_begin(o, 2);
        wire_put_text(o, 1, rows[i].value);
        wire_end(o, value);
        wire_end(o, entry);
    }
}

// Only what is in force: requests are not merged into batches, so there is no dynamic_batching.
void grpc_put_config(WireWriter *o, const ModelInfo *s) {
    int32_t batch = metadata_max_batch(s);
    size_t  all = wire_begin(o, 1);
    wire_put_text(o, CONFIG_NAME, s->name);
    wire_put_text(o, CONFIG_PLATFORM, metadata_config_platform);
    put_policy(o, s);
    wire_put_uint(o, CONFIG_BATCH, (uint64_t)batch);
    put_inputs(o, s, batch > 0);
    put_outputs(o, s, batch > 0);
    wire_put_text(o, CONFIG_FILE, metadata_model_file(s));
    put_qos(o, s);
    wire_put_text(o, CONFIG_BACKEND, metadata_backend);
    wire_end(o, wire_begin(o, CONFIG_TRANSACTIONS));  // decoupled: false
    wire_end(o, all);
}

static void put_trace(WireWriter *o) {
    MetadataSetting rows[METADATA_TRACE];
    metadata_trace_settings(rows);
    for (uint32_t i = 0; i < METADATA_TRACE; i++) {
        size_t entry = wire_begin(o, 1);
        wire_put_text(o, 1, rows[i].key);
        size_t value = wire_begin(o, 2), len = strlen(rows[i].text);
        wire_put_tag(o, 1, WIRE_BYTES);  // an element of a list, kept if it is empty
        wire_put_varint(o, len);
        wire_put(o, rows[i].text, len);
        wire_end(o, value);
        wire_end(o, entry);
    }
}

enum { LOG_BOOL = 1, LOG_UINT, LOG_TEXT };

// A member of a oneof is kept if it is zero or empty.
static void put_log(WireWriter *o, const ServeSettings *set) {
    MetadataSetting rows[METADATA_LOG];
    metadata_log_settings(set, rows);
    for (uint32_t i = 0; i < METADATA_LOG; i++) {
        const MetadataSetting *row = &rows[i];
        size_t                 entry = wire_begin(o, 1), len = row->text ? strlen(row->text) : 0;
        wire_put_text(o, 1, row->key);
        size_t value = wire_begin(o, 2);
        wire_put_tag(o,
                     row->text != NULL ? LOG_TEXT
                     : row->is_flag    ? LOG_BOOL
                                       : LOG_UINT,
                     row->text != NULL ? WIRE_BYTES : WIRE_VARINT);
        wire_put_varint(o, row->text != NULL ? len : row->number);
        wire_put(o, row->text, len);
        wire_end(o, value);
        wire_end(o, entry);
    }
}

typedef struct SettingsRequest {
    Str  model;
    bool changes;
} SettingsRequest;

static Err read_settings(Str message, SettingsRequest *out) {
    WireReader in = wire_reader(message.at, message.len);
    WireField  f;
    bool       more = true;
    *out = (SettingsRequest){.model = {"", 0}};
    while (more) {
        TRY(wire_next(&in, &f, &more));
        if (more && f.number == 1) out->changes = true;
        if (more && f.number == 2) TRY(wire_text(&in, &f, &out->model));
    }
    return ERR_OK;
}

void grpc_settings(GrpcCall *c) {
    SettingsRequest q;
    WireWriter      o = wire_writer(&c->g->scratch, 1 << 16);
    char            why[METADATA_UNKNOWN];
    if (read_settings(c->message, &q) != ERR_OK) {
        grpc_fail(c->x, GRPC_INVALID, 0, err_why());
    } else if (q.model.len > 0 && registry_find(c->g->o.registry, q.model, (Str){0}) == NULL) {
        grpc_fail(c->x, GRPC_NOT_FOUND, 0, metadata_unknown(q.model, (Str){0}, why));
    } else if (q.changes) {
        grpc_fail(c->x, GRPC_INVALID, 0, SETTINGS_READ_ONLY);
    } else {
        if (c->kind == GRPC_LOG_SETTINGS)
            put_log(&o, c->g->o.set);
        else
            put_trace(&o);
        grpc_answer(c, &o);
    }
}
