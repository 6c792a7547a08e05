// Reads config.pbtxt, Triton's model configuration: checks each field and what it means here.
#include "serve/models/pbtxt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "serve/config/config_int.h"
#include "serve/models/pbtxt_text.h"

enum { PBTXT_WARNINGS = 16, PBTXT_SETS = 64, PBTXT_TENSORS = 256, PBTXT_VERSIONS = 256 };

typedef enum PbtxtTakes {
    TAKES_MESSAGE,
    TAKES_STRING,
    TAKES_NUMBER,
    TAKES_BOOL,
    TAKES_WORD
} PbtxtTakes;

typedef enum PbtxtId {
#define X(id, path, takes) FIELD_##id,
#include "serve/models/pbtxt.def"
#undef X
} PbtxtId;

typedef struct PbtxtReader {
    PbtxtText text;
    Pbtxt    *out;
    bool      strict;
    char      path[256];           // of the field, separated by dots
    size_t    marks[PBTXT_DEPTH];  // length of path outside each open message
    uint32_t  depth, skip;         // skip: open messages below an unknown field

    const char *key, *value;  // of the parameter being read
    uint32_t    key_line;
    PbtxtSet    own[PBTXT_SETS];  // from qos.* parameters, which override other fields
    uint32_t    n_own;
    int64_t     samples, warmup;  // of model_warmup
    int64_t     timeout_us;       // default_timeout_microseconds
    uint32_t    warmup_line, timeout_line, action_line;
    bool        delay;  // timeout_action is DELAY
} PbtxtReader;

static Err warn(PbtxtReader *r, uint32_t line, const char *what) {
    if (r->out->n_warnings == PBTXT_WARNINGS) return ERR_OK;
    const char *s =
        r->out->n_warnings + 1 < PBTXT_WARNINGS
            ? config_format(r->text.arena, "%s:%u: %s", r->text.name, line, what)
            : config_format(r->text.arena, "%s: further warnings omitted", r->text.name);
    if (s == NULL) return err_set(ERR_LIMIT, "%s:%u: out of memory", r->text.name, line);
    r->out->warnings[r->out->n_warnings++] = s;
    return ERR_OK;
}

static Err warn_or_fail(PbtxtReader *r, uint32_t line, const char *what) {
    if (r->strict) return err_set(ERR_CONFIG, "%s:%u: %s", r->text.name, line, what);
    return warn(r, line, what);
}

static Err invalid(const PbtxtReader *r, const PbtxtField *f, const char *why) {
    return err_set(ERR_CONFIG, "%s:%u:%u: %s: %s", r->text.name, f->line, f->column, r->path, why);
}

static Err derive(PbtxtReader *r, uint32_t line, const char *key, const char *value) {
    if (value == NULL) return err_set(ERR_LIMIT, "%s:%u: out of memory", r->text.name, line);
    Pbtxt *p = r->out;
    for (uint32_t i = 0; i < p->n_sets; i++)  // the last value counts
        if (strcmp(p->sets[i].key, key) == 0) {
            p->sets[i] = (PbtxtSet){key, value, line};
            return ERR_OK;
        }
    p->sets[p->n_sets++] = (PbtxtSet){key, value, line};
    return ERR_OK;
}

static Err derive_number(PbtxtReader *r, uint32_t line, const char *key, int64_t number) {
    return derive(r, line, key, config_format(r->text.arena, "%" PRId64, number));
}

static Err derive_ms(PbtxtReader *r, uint32_t line, const char *key, int64_t us) {
    return derive(r, line, key,
                  config_format(r->text.arena, "%" PRId64 ".%03d", us / 1000, (int)(us % 1000)));
}

static Err add_tensor(PbtxtReader *r, const PbtxtField *f, PbtxtTensor *list, uint32_t *n) {
    if (*n == PBTXT_TENSORS) return invalid(r, f, "more than 256 of them");
    list[(*n)++] = (PbtxtTensor){.name = "", .rank = RANK_UNKNOWN, .line = f->line};
    return ERR_OK;
}

static Err begin_reshape(const PbtxtReader *r, const PbtxtField *f, PbtxtTensor *list, uint32_t n) {
    if (n == 0) return ERR_OK;
    if (list[n - 1].reshaped) return invalid(r, f, "given twice");
    list[n - 1].reshaped = true;
    return ERR_OK;
}

static Err field_open(PbtxtReader *r, uint32_t id, const PbtxtField *f) {
    Pbtxt *p = r->out;
    switch ((PbtxtId)id) {
    case FIELD_INPUT: return add_tensor(r, f, p->inputs, &p->n_inputs);
    case FIELD_OUTPUT: return add_tensor(r, f, p->outputs, &p->n_outputs);
    case FIELD_INPUT_RESHAPE: return begin_reshape(r, f, p->inputs, p->n_inputs);
    case FIELD_OUTPUT_RESHAPE: return begin_reshape(r, f, p->outputs, p->n_outputs);
    case FIELD_ALL: p->policy = PBTXT_ALL_VERSIONS; return ERR_OK;
    case FIELD_SPECIFIC: p->policy = PBTXT_SPECIFIC_VERSIONS; return ERR_OK;
    case FIELD_LATEST: p->policy = PBTXT_LATEST_VERSIONS; return ERR_OK;
    case FIELD_WARMUP:
        r->samples = 1;
        r->warmup_line = f->line;
        return ERR_OK;
    case FIELD_PARAMETER: r->key = r->value = NULL; return ERR_OK;
    default: return ERR_OK;
    }
}

static Err set_type(const PbtxtReader *r, const PbtxtField *f, PbtxtTensor *t) {
    static const struct {
        const char *word;
        DType       type;
    } types[] = {
        {"TYPE_BOOL", DT_BOOL},  {"TYPE_UINT8", DT_U8},   {"TYPE_UINT16", DT_U16},
        {"TYPE_UINT32", DT_U32}, {"TYPE_UINT64", DT_U64}, {"TYPE_INT8", DT_I8},
        {"TYPE_INT16", DT_I16},  {"TYPE_INT32", DT_I32},  {"TYPE_INT64", DT_I64},
        {"TYPE_FP16", DT_F16},   {"TYPE_FP32", DT_F32},   {"TYPE_FP64", DT_F64},
        {"TYPE_STRING", DT_STR}, {"TYPE_BF16", DT_BF16},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].word, f->value) == 0) {
            t->dtype = types[i].type;
            return ERR_OK;
        }
    return invalid(r, f, "unknown data type; write TYPE_FP32, TYPE_INT64, TYPE_STRING, ...");
}

static Err add_dim(const PbtxtReader *r, const PbtxtField *f, int64_t number, int32_t *rank,
                   int64_t *dims) {
    if (number < -1 || number == 0 || number > INT64_C(1) << 40)
        return invalid(r, f, "a dimension is -1 or above 0");
    if (*rank < 0) *rank = 0;
    if (*rank == TENSOR_MAX_RANK) return invalid(r, f, "more than 8 dimensions");
    dims[(*rank)++] = number;
    return ERR_OK;
}

static Err set_format(const PbtxtReader *r, const PbtxtField *f, PbtxtTensor *t) {
    static const char *const words[] = {"FORMAT_NONE", "FORMAT_NHWC", "FORMAT_NCHW"};
    for (uint32_t i = 0; i < 3; i++)
        if (strcmp(words[i], f->value) == 0) {
            t->format = (PbtxtFormat)i;
            return ERR_OK;
        }
    return invalid(r, f, "write FORMAT_NONE, FORMAT_NHWC or FORMAT_NCHW");
}

static bool is_plain_name(const char *name) {
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL && strlen(name) <= 255;
}

static Err set_labels(const PbtxtReader *r, const PbtxtField *f, PbtxtTensor *t) {
    if (!is_plain_name(f->value))
        return invalid(r, f, "write the name of a file beside config.pbtxt, without a path");
    t->labels = f->value;
    return ERR_OK;
}

static Err tensor_value(PbtxtReader *r, uint32_t id, const PbtxtField *f, int64_t number) {
    Pbtxt *p = r->out;
    bool   in = id >= FIELD_INPUT && id < FIELD_OUTPUT;
    if (in ? p->n_inputs == 0 : p->n_outputs == 0) return ERR_OK;
    PbtxtTensor *t = in ? &p->inputs[p->n_inputs - 1] : &p->outputs[p->n_outputs - 1];
    switch ((PbtxtId)id) {
    case FIELD_INPUT_NAME:
    case FIELD_OUTPUT_NAME: t->name = f->value; return ERR_OK;
    case FIELD_INPUT_TYPE:
    case FIELD_OUTPUT_TYPE: return set_type(r, f, t);
    case FIELD_INPUT_DIMS:
    case FIELD_OUTPUT_DIMS: return add_dim(r, f, number, &t->rank, t->dims);
    case FIELD_INPUT_RESHAPE_SHAPE:
    case FIELD_OUTPUT_RESHAPE_SHAPE: return add_dim(r, f, number, &t->shape_rank, t->shape);
    case FIELD_INPUT_FORMAT: return set_format(r, f, t);
    case FIELD_OUTPUT_LABELS: return set_labels(r, f, t);
    case FIELD_INPUT_OPTIONAL: t->optional = number != 0; return ERR_OK;
    default: return ERR_OK;
    }
}

static Err set_platform(const PbtxtReader *r, const PbtxtField *f, const char **to) {
    static const char *const ours[] = {"onnxruntime_onnx", "onnx_onnxv1", "onnxruntime", "onnx",
                                       ""};
    for (uint32_t i = 0; i < 5; i++)
        if (strcmp(ours[i], f->value) == 0) {
            *to = f->value;
            return ERR_OK;
        }
    return invalid(r, f,
                   "only ONNX models are served; write onnxruntime_onnx, or backend onnxruntime");
}

static Err set_filename(PbtxtReader *r, const PbtxtField *f) {
    if (!is_plain_name(f->value))
        return invalid(r, f, "write the name of a file in the version's folder, without a path");
    r->out->filename = f->value;
    return ERR_OK;
}

static Err set_batch(PbtxtReader *r, const PbtxtField *f, int64_t number) {
    if (number < 0) return invalid(r, f, "must be at least 0; 0 is no limit");
    r->out->max_batch_size = number;
    return number > 0 ? derive_number(r, f->line, "max_batch", number) : ERR_OK;
}

static Err add_specific(PbtxtReader *r, const PbtxtField *f, int64_t number) {
    Pbtxt *p = r->out;
    if (number < 1) return invalid(r, f, "versions start at 1");
    if (p->n_versions == PBTXT_VERSIONS) return invalid(r, f, "more than 256 of them");
    p->versions[p->n_versions++] = (uint64_t)number;
    return ERR_OK;
}

static Err queue_value(PbtxtReader *r, uint32_t id, const PbtxtField *f, int64_t number) {
    switch ((PbtxtId)id) {
    case FIELD_QUEUE_ACTION:
        r->delay = strcmp(f->value, "DELAY") == 0;
        if (!r->delay && strcmp(f->value, "REJECT") != 0)
            return invalid(r, f, "write REJECT or DELAY");
        return derive(r, f->line, "on_miss", r->delay ? "degrade" : "reject");
    case FIELD_QUEUE_TIMEOUT:
        if (number < 0 || number > INT64_C(10000000000))
            return invalid(r, f, "must be from 0 to 1e10 microseconds");
        r->timeout_us = number;
        r->timeout_line = f->line;
        return ERR_OK;
    case FIELD_QUEUE_SIZE:
        if (number < 0) return invalid(r, f, "must be at least 0; 0 is the default");
        return number > 0 ? derive_number(r, f->line, "queue", number) : ERR_OK;
    default: return ERR_OK;
    }
}

static Err group_value(PbtxtReader *r, uint32_t id, const PbtxtField *f, int64_t number) {
    if (id == FIELD_GROUP_COUNT && number > 1)
        return warn(r, f->line,
                    "instance_group.count has no effect: use `concurrency` for requests that run "
                    "at the same time, "
                    "`max_cores` for cores");
    if (id == FIELD_GROUP_KIND && strcmp(f->value, "KIND_CPU") != 0 &&
        strcmp(f->value, "KIND_AUTO") != 0)
        return warn(r, f->line, "instance_group.kind: models run on CPUs only");
    return ERR_OK;
}

static Err field_value(PbtxtReader *r, uint32_t id, const PbtxtField *f, int64_t number) {
    switch ((PbtxtId)id) {
    case FIELD_NAME: r->out->name = f->value; return ERR_OK;
    case FIELD_PLATFORM: return set_platform(r, f, &r->out->platform);
    case FIELD_BACKEND: return set_platform(r, f, &r->out->backend);
    case FIELD_FILENAME: return set_filename(r, f);
    case FIELD_MAX_BATCH: return set_batch(r, f, number);
    case FIELD_LATEST_N: return derive_number(r, f->line, "versions", number);
    case FIELD_SPECIFIC_N: return add_specific(r, f, number);
    case FIELD_WARMUP_COUNT:
        if (number < 0 || number > 1000) return invalid(r, f, "must be from 0 to 1000");
        if (number > 0) r->samples = number;
        return ERR_OK;
    case FIELD_PARAMETER_KEY:
        r->key = f->value;
        r->key_line = f->line;
        return ERR_OK;
    case FIELD_PARAMETER_TEXT: r->value = f->value; return ERR_OK;
    default: break;
    }
    if (id >= FIELD_INPUT && id < FIELD_VERSIONS) return tensor_value(r, id, f, number);
    if (id >= FIELD_GROUP && id < FIELD_BATCHING) return group_value(r, id, f, number);
    return queue_value(r, id, f, number);
}

// qos.KEY is the setting KEY; other parameters are ignored.
static Err take_parameter(PbtxtReader *r) {
    char what[256];
    if (r->key == NULL || strncmp(r->key, "qos.", 4) != 0) return ERR_OK;
    const char *key = r->key + 4;
    if (!config_is_tenant(key)) {
        const char *near = config_nearest(key, false, true, false);
        (void)snprintf(what, sizeof what, "unknown parameter %.100s; %s%s%s", r->key,
                       near != NULL ? "did you mean qos." : "see docs/serve-config.md",
                       near != NULL ? near : "", near != NULL ? "?" : "");
        return warn_or_fail(r, r->key_line, what);
    }
    if (r->value == NULL)
        return err_set(ERR_CONFIG, "%s:%u: parameter %s lacks value { string_value: \"...\" }",
                       r->text.name, r->key_line, r->key);
    if (r->n_own == PBTXT_SETS)
        return err_set(ERR_CONFIG, "%s:%u: more than %d parameters qos.*", r->text.name,
                       r->key_line, PBTXT_SETS);
    r->own[r->n_own++] = (PbtxtSet){key, r->value, r->key_line};
    return ERR_OK;
}

static Err field_close(PbtxtReader *r, uint32_t id, const PbtxtField *f) {
    (void)f;
    if (id == FIELD_WARMUP && r->warmup < INT32_MAX) r->warmup += r->samples;
    return id == FIELD_PARAMETER ? take_parameter(r) : ERR_OK;
}

// With DELAY the timeout is a latency target: requests that miss it are degraded, not dropped.
static Err fields_end(PbtxtReader *r) {
    Pbtxt *p = r->out;
    if (r->timeout_us > 0)
        TRY(derive_ms(r, r->timeout_line, r->delay ? "target_ms" : "timeout_ms", r->timeout_us));
    if (r->warmup > 0) TRY(derive_number(r, r->warmup_line, "warmup", r->warmup));
    for (uint32_t i = 0; i < r->n_own; i++) p->sets[p->n_sets++] = r->own[i];
    return ERR_OK;
}

typedef struct Known {
    const char *path;
    PbtxtTakes  takes;
} Known;

static const Known known[] = {
#define X(id, path, takes) [FIELD_##id] = {path, TAKES_##takes},
#include "serve/models/pbtxt.def"
#undef X
};
enum { N_KNOWN = sizeof known / sizeof *known };

static uint32_t find(const char *path) {
    for (uint32_t i = 0; i < N_KNOWN; i++)
        if (strcmp(known[i].path, path) == 0) return i;
    return N_KNOWN;
}

// The known field of the same message with the most similar name.
static const char *nearest(const char *path) {
    const char *beside[N_KNOWN], *dot = strrchr(path, '.');
    size_t      n = 0, prefix = dot != NULL ? (size_t)(dot - path) + 1 : 0;
    for (uint32_t i = 0; i < N_KNOWN; i++)
        if (strncmp(known[i].path, path, prefix) == 0 &&
            strchr(known[i].path + prefix, '.') == NULL)
            beside[n++] = known[i].path + prefix;
    return text_nearest(path + prefix, beside, n);
}

static Err unknown(PbtxtReader *r, const PbtxtField *f) {
    char        what[512];
    const char *near = nearest(r->path);
    (void)snprintf(what, sizeof what, "%.200s is unknown and has no effect%s%s%s", r->path,
                   near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                   near != NULL ? "?" : "");
    return warn_or_fail(r, f->line, what);
}

static Err wrong_kind(const PbtxtReader *r, const PbtxtField *f, const char *takes) {
    return err_set(ERR_CONFIG, "%s:%u:%u: %s takes %s", r->text.name, f->line, f->column, r->path,
                   takes);
}

static Err parse_integer(const PbtxtReader *r, const PbtxtField *f, int64_t *out) {
    char *end = NULL;
    errno = 0;
    *out = strtoll(f->value, &end, 0);
    if (f->kind != PBTXT_NUMBER || end == f->value || *end != '\0')
        return wrong_kind(r, f, "a whole number");
    return errno == 0 ? ERR_OK : wrong_kind(r, f, "a whole number of at most 64 bits");
}

static Err parse_bool(const PbtxtReader *r, const PbtxtField *f, int64_t *out) {
    static const char *const words[] = {"false", "true", "f", "t", "False", "True", "0", "1"};
    for (uint32_t i = 0; i < 8 && f->kind != PBTXT_STRING; i++)
        if (strcmp(words[i], f->value) == 0) {
            *out = i % 2;
            return ERR_OK;
        }
    return wrong_kind(r, f, "true or false");
}

static Err convert(const PbtxtReader *r, const PbtxtField *f, PbtxtTakes takes, int64_t *number) {
    switch (takes) {
    case TAKES_MESSAGE: return wrong_kind(r, f, "fields in { }");
    case TAKES_NUMBER: return parse_integer(r, f, number);
    case TAKES_BOOL: return parse_bool(r, f, number);
    case TAKES_STRING:
        return f->kind == PBTXT_STRING ? ERR_OK : wrong_kind(r, f, "a quoted string");
    case TAKES_WORD: return f->kind == PBTXT_WORD ? ERR_OK : wrong_kind(r, f, "an unquoted word");
    }
    return ERR_OK;
}

static Err push(PbtxtReader *r, const PbtxtField *f) {
    size_t n = strlen(r->path), len = strlen(f->name);
    if (n + len + 2 > sizeof r->path)
        return err_set(ERR_CONFIG, "%s:%u:%u: name too long", r->text.name, f->line, f->column);
    r->marks[r->depth] = n;
    (void)snprintf(r->path + n, sizeof r->path - n, "%s%s", n > 0 ? "." : "", f->name);
    return ERR_OK;
}

static Err take_open(PbtxtReader *r, const PbtxtField *f) {
    if (r->skip > 0) {
        r->skip++;
        return ERR_OK;
    }
    TRY(push(r, f));
    uint32_t id = find(r->path);
    if (id == N_KNOWN) {
        TRY(unknown(r, f));
        r->path[r->marks[r->depth]] = '\0';
        r->skip = 1;
        return ERR_OK;
    }
    if (known[id].takes != TAKES_MESSAGE)
        return wrong_kind(r, f, known[id].takes == TAKES_STRING ? "a quoted string" : "one value");
    r->depth++;
    return field_open(r, id, f);
}

static Err take_close(PbtxtReader *r, const PbtxtField *f) {
    if (r->skip > 0) {
        r->skip--;
        return ERR_OK;
    }
    uint32_t id = find(r->path);
    r->path[r->marks[--r->depth]] = '\0';
    return field_close(r, id, f);
}

static Err take_value(PbtxtReader *r, const PbtxtField *f) {
    int64_t number = 0;
    if (r->skip > 0) return ERR_OK;
    TRY(push(r, f));
    uint32_t id = find(r->path);
    Err      e = id == N_KNOWN ? unknown(r, f) : convert(r, f, known[id].takes, &number);
    if (e == ERR_OK && id < N_KNOWN) e = field_value(r, id, f, number);
    r->path[r->marks[r->depth]] = '\0';
    return e;
}

static Err read_fields(PbtxtReader *r) {
    for (;;) {
        PbtxtField f;
        TRY(pbtxt_text_next(&r->text, &f));
        switch (f.event) {
        case PBTXT_END: return fields_end(r);
        case PBTXT_OPEN: TRY(take_open(r, &f)); break;
        case PBTXT_CLOSE: TRY(take_close(r, &f)); break;
        case PBTXT_VALUE: TRY(take_value(r, &f)); break;
        }
    }
}

Err pbtxt_parse(const char *name, const char *text, size_t len, bool strict, Arena *a, Pbtxt *out) {
    Pbtxt       p = {.name = "", .platform = "", .backend = "", .filename = ""};
    PbtxtReader r = {.out = &p, .strict = strict};
    if (len > PBTXT_BYTES)
        return err_set(ERR_CONFIG, "%s: larger than %d bytes", name, PBTXT_BYTES);
    p.warnings = arena_try_new(a, const char *, PBTXT_WARNINGS);
    p.sets = arena_try_new(a, PbtxtSet, 2 * PBTXT_SETS);
    p.inputs = arena_try_new(a, PbtxtTensor, PBTXT_TENSORS);
    p.outputs = arena_try_new(a, PbtxtTensor, PBTXT_TENSORS);
    p.versions = arena_try_new(a, uint64_t, PBTXT_VERSIONS);
    if (p.warnings == NULL || p.sets == NULL || p.inputs == NULL || p.outputs == NULL ||
        p.versions == NULL)
        return err_set(ERR_LIMIT, "%s: out of memory", name);
    pbtxt_text_init(&r.text, name, text, len, a);
    TRY(read_fields(&r));
    *out = p;
    return ERR_OK;
}

Err pbtxt_read(const char *path, bool strict, Arena *a, Pbtxt *out) {
    Arena  scratch;
    char  *text = NULL;
    size_t len = 0;
    TRY(arena_init(&scratch, PBTXT_BYTES + 8192));
    Err e = file_read(path, PBTXT_BYTES, &scratch, &text, &len);
    if (e == ERR_OK) e = pbtxt_parse(path, text, len, strict, a, out);
    arena_finish(&scratch);
    return e;
}
