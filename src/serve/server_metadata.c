#include "serve/server_metadata.h"

#include <stdio.h>
#include <string.h>

const char *const metadata_extensions[] = {
    "binary_tensor_data", "classification",      "model_repository", "schedule_policy",
    "statistics",         "model_configuration", "cotenant_timing",  NULL};
const char *const metadata_platform = "onnx_onnxv1";
const char *const metadata_config_platform = "onnxruntime_onnx", *const metadata_backend =
                                                                     "onnxruntime";

const char *metadata_unknown(Str name, Str version, char out[METADATA_UNKNOWN]) {
    char model[INFER_PRINTABLE], number[INFER_PRINTABLE];
    (void)snprintf(out, METADATA_UNKNOWN, "Request for unknown model: '%s'%s%s is not found",
                   infer_printable(name, model), version.len > 0 ? " version " : "",
                   version.len > 0 ? infer_printable(version, number) : "");
    return out;
}

const char *metadata_state(ModelState s) {
    switch (s) {
    case MODEL_LOADING: return "LOADING";
    case MODEL_READY: return "READY";
    case MODEL_UNLOADING: return "UNLOADING";
    case MODEL_UNAVAILABLE: return "UNAVAILABLE";
    }
    return "UNKNOWN";
}

static bool has_open_batch(const TensorSpec *s, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (s[i].type.rank < 1 || s[i].type.dims[0] >= 0) return false;
    return n > 0;
}

int32_t metadata_max_batch(const ModelInfo *s) {
    if (!has_open_batch(s->signature.inputs, s->signature.n_inputs) ||
        !has_open_batch(s->signature.outputs, s->signature.n_outputs))
        return 0;
    return s->config->set.max_batch > 0 ? s->config->set.max_batch : 1;
}

const char *metadata_triton_type(DType t, uint32_t *number) {
    static const struct {
        DType       dtype;
        const char *name;
    } rows[] = {{DT_NONE, "TYPE_INVALID"}, {DT_BOOL, "TYPE_BOOL"},  {DT_U8, "TYPE_UINT8"},
                {DT_U16, "TYPE_UINT16"},   {DT_U32, "TYPE_UINT32"}, {DT_U64, "TYPE_UINT64"},
                {DT_I8, "TYPE_INT8"},      {DT_I16, "TYPE_INT16"},  {DT_I32, "TYPE_INT32"},
                {DT_I64, "TYPE_INT64"},    {DT_F16, "TYPE_FP16"},   {DT_F32, "TYPE_FP32"},
                {DT_F64, "TYPE_FP64"},     {DT_STR, "TYPE_STRING"}, {DT_BF16, "TYPE_BF16"}};
    uint32_t at = sizeof rows / sizeof *rows - 1;
    while (at > 0 && rows[at].dtype != t) at--;
    *number = at;
    return rows[at].name;
}

const PbtxtTensor *metadata_declared(const ModelInfo *s, bool input, const char *name) {
    const Pbtxt       *p = s->config->declared;
    const PbtxtTensor *all = p == NULL ? NULL : input ? p->inputs : p->outputs;
    uint32_t           n = p == NULL ? 0 : input ? p->n_inputs : p->n_outputs;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0) return &all[i];
    return NULL;
}

const char *metadata_format(const ModelInfo *s, const char *input, uint32_t *number) {
    static const char *const names[] = {"FORMAT_NONE", "FORMAT_NHWC", "FORMAT_NCHW"};
    const PbtxtTensor       *t = metadata_declared(s, true, input);
    *number = t != NULL ? (uint32_t)t->format : 0;
    return names[*number];
}

bool metadata_version_policy(const ModelInfo *s, PbtxtPolicy *out) {
    *out = s->config->declared_policy ? s->config->declared->policy : PBTXT_LATEST_VERSIONS;
    return s->config->from_disk;
}

const char *metadata_model_file(const ModelInfo *s) {
    const char *slash = strrchr(s->config->path, '/');
    return slash != NULL ? slash + 1 : s->config->path;
}

void metadata_trace_settings(MetadataSetting rows[METADATA_TRACE]) {
    static const char *const texts[METADATA_TRACE][2] = {
        {"trace_level", "OFF"}, {"trace_rate", "1000"}, {"trace_count", "-1"},
        {"log_frequency", "0"}, {"trace_file", ""},     {"trace_mode", "triton"}};
    for (uint32_t i = 0; i < METADATA_TRACE; i++)
        rows[i] = (MetadataSetting){.key = texts[i][0], .text = texts[i][1]};
}

void metadata_log_settings(const ServeSettings *set, MetadataSetting rows[METADATA_LOG]) {
    const char *level = set->log_level;
    bool        debug = strcmp(level, "debug") == 0, info = debug || strcmp(level, "info") == 0;
    bool        warn = info || strcmp(level, "warn") == 0;
    rows[0] = (MetadataSetting){.key = "log_file", .text = ""};
    rows[1] = (MetadataSetting){.key = "log_info", .number = info, .is_flag = true};
    rows[2] = (MetadataSetting){.key = "log_warning", .number = warn, .is_flag = true};
    rows[3] = (MetadataSetting){.key = "log_error", .number = 1, .is_flag = true};
    rows[4] = (MetadataSetting){.key = "log_verbose_level", .number = debug};
    rows[5] = (MetadataSetting){.key = "log_format", .text = "default"};
}

void metadata_qos(const ModelInfo *s, MetadataRow rows[METADATA_ROWS]) {
    const TenantSettings    *set = &s->config->set;
    static const char *const keys[METADATA_ROWS] = {
        "qos.target_ms", "qos.percentile", "qos.class",  "qos.on_miss",
        "qos.min_cores", "qos.max_cores",  "qos.weights"};
    for (uint32_t i = 0; i < METADATA_ROWS; i++) rows[i].key = keys[i];
    (void)snprintf(rows[0].value, METADATA_VALUE, "%g", (double)s->target_ns / 1e6);
    (void)snprintf(rows[1].value, METADATA_VALUE, "%g", set->percentile);
    (void)snprintf(rows[2].value, METADATA_VALUE, "%s", set->class);
    (void)snprintf(rows[3].value, METADATA_VALUE, "%s", set->on_miss);
    (void)snprintf(rows[4].value, METADATA_VALUE, "%d", set->min_cores);
    (void)snprintf(rows[5].value, METADATA_VALUE, "%d", set->max_cores);
    (void)snprintf(rows[6].value, METADATA_VALUE, "%s", set->weights);
}
