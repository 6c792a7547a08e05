// REST: a model's configuration as Triton's model_config.proto names it; trace and log settings.
#include "serve/rest/rest_int.h"
#include "serve/server_metadata.h"

// Triton's configuration leaves out the batch dimension.
static json_t *dims_json(const Tensor *t, bool batched) {
    json_t *dims = rest_shape_json(t);
    if (batched) json_array_remove(dims, 0);
    return dims;
}

static json_t *with_reshape(json_t *tensor, const TensorSpec *spec, bool batched) {
    if (spec->reshaped)
        json_object_set_new(tensor, "reshape",
                            json_pack("{s:o}", "shape", dims_json(&spec->own, batched)));
    return tensor;
}

static json_t *inputs_json(const ModelInfo *s, bool batched) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->signature.n_inputs; i++) {
        const TensorSpec *spec = &s->signature.inputs[i];
        uint32_t          number;
        json_t *input = json_pack("{s:s,s:s,s:s,s:o,s:b,s:b,s:b}", "name", spec->name, "data_type",
                                  metadata_triton_type(spec->type.dtype, &number), "format",
                                  metadata_format(s, spec->name, &number), "dims",
                                  dims_json(&spec->type, batched), "is_shape_tensor", 0,
                                  "allow_ragged_batch", 0, "optional", (int)spec->optional);
        json_array_append_new(list, with_reshape(input, spec, batched));
    }
    return list;
}

static json_t *outputs_json(const ModelInfo *s, bool batched) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->signature.n_outputs; i++) {
        const TensorSpec  *spec = &s->signature.outputs[i];
        const PbtxtTensor *declared = metadata_declared(s, false, spec->name);
        bool               labels = declared != NULL && declared->labels != NULL;
        uint32_t           number;
        json_t *output = json_pack("{s:s,s:s,s:o,s:s,s:b}", "name", spec->name, "data_type",
                                   metadata_triton_type(spec->type.dtype, &number), "dims",
                                   dims_json(&spec->type, batched), "label_filename",
                                   labels ? declared->labels : "", "is_shape_tensor", 0);
        json_array_append_new(list, with_reshape(output, spec, batched));
    }
    return list;
}

static json_t *policy_json(const ModelInfo *s, PbtxtPolicy policy) {
    if (policy == PBTXT_ALL_VERSIONS) return json_pack("{s:{}}", "all");
    if (policy == PBTXT_LATEST_VERSIONS)
        return json_pack("{s:{s:i}}", "latest", "num_versions", s->config->set.versions);
    json_t      *versions = json_array();
    const Pbtxt *p = s->config->declared;
    for (uint32_t i = 0; i < p->n_versions; i++)
        json_array_append_new(versions, json_integer((json_int_t)p->versions[i]));
    return json_pack("{s:{s:o}}", "specific", "versions", versions);
}

static json_t *qos_json(const ModelInfo *s) {
    MetadataRow rows[METADATA_ROWS];
    json_t     *all = json_object();
    metadata_qos(s, rows);
    for (uint32_t i = 0; i < METADATA_ROWS; i++)
        json_object_set_new(all, rows[i].key, json_pack("{s:s}", "string_value", rows[i].value));
    return all;
}

// Only what is in force: requests are not merged into batches, so there is no dynamic_batching.
json_t *rest_config_json(const ModelInfo *s) {
    int         most = metadata_max_batch(s);
    PbtxtPolicy policy;
    json_t     *doc =
        json_pack("{s:s,s:s,s:s,s:i,s:o,s:o,s:s,s:{s:b},s:o}", "name", s->name, "platform",
                  metadata_config_platform, "backend", metadata_backend, "max_batch_size", most,
                  "input", inputs_json(s, most > 0), "output", outputs_json(s, most > 0),
                  "default_model_filename", metadata_model_file(s), "model_transaction_policy",
                  "decoupled", 0, "parameters", qos_json(s));
    if (metadata_version_policy(s, &policy))
        json_object_set_new(doc, "version_policy", policy_json(s, policy));
    return doc;
}

static json_t *trace_json(void) {
    MetadataSetting rows[METADATA_TRACE];
    json_t         *doc = json_object();
    metadata_trace_settings(rows);
    for (uint32_t i = 0; i < METADATA_TRACE; i++)
        json_object_set_new(doc, rows[i].key, json_string(rows[i].text));
    json_object_set_new(doc, "trace_level", json_pack("[s]", rows[0].text));
    return doc;
}

static json_t *log_json(const ServeSettings *set) {
    MetadataSetting rows[METADATA_LOG];
    json_t         *doc = json_object();
    metadata_log_settings(set, rows);
    for (uint32_t i = 0; i < METADATA_LOG; i++)
        json_object_set_new(doc, rows[i].key,
                            rows[i].text != NULL ? json_string(rows[i].text)
                            : rows[i].is_flag    ? json_boolean(rows[i].number)
                                                 : json_integer(rows[i].number));
    return doc;
}

// Whether the body asks for a change: an object with members.
static bool changes_settings(const RestCall *c) {
    json_t *doc = NULL;
    if (c->x->body_len == 0) return false;
    if (json_parse("body", (const char *)c->x->body, c->x->body_len, &doc) != ERR_OK) return true;
    bool some = json_object_size(doc) > 0 || !json_is_object(doc);
    json_decref(doc);
    return some;
}

void rest_settings(RestCall *c) {
    Str  name = {c->route.name, strlen(c->route.name)};
    char why[METADATA_UNKNOWN];
    if (name.len > 0 && registry_find(c->rest->o.registry, name, (Str){0}) == NULL)
        rest_error(c, 404, 0, metadata_unknown(name, (Str){0}, why));
    else if (changes_settings(c))
        rest_error(c, 400, 0, SETTINGS_READ_ONLY);
    else
        rest_json(c, 200, c->route.kind == ROUTE_LOGGING ? log_json(c->rest->o.set) : trace_json());
}
