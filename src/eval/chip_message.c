#include "eval/chip_message.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

static const TimeNs WAKE_MOST_NS = 1000000000000000;  // ahead: 11 days
static const double CAP_LEAST = 1e-4;                 // of the memory's bandwidth
static const double COST_MOST = 1e18;

static Err unknown_key(const char *key, const char *const *known, size_t n, const char *where) {
    char hint[TEXT_MEANT], list[TEXT_MEANT] = "it has ";
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(list);
        (void)snprintf(list + len, sizeof list - len, "%s%s", i > 0 ? ", " : "", known[i]);
    }
    return err_set(ERR_PARSE, "%s: unknown member \"%.40s\"; %s", where, key,
                   text_meant(key, known, n, list, hint));
}

static Err check_keys(const json_t *object, const char *const *known, size_t n, const char *where) {
    const char *key;
    json_t     *value;
    json_object_foreach((json_t *)object, key, value) {
        size_t i = 0;
        while (i < n && strcmp(known[i], key) != 0) i++;
        if (i == n) return unknown_key(key, known, n, where);
    }
    return ERR_OK;
}

static Err real_of(const json_t *object, const char *key, double least, double most, double *out) {
    const json_t *v = json_object_get(object, key);
    if (v == NULL) return ERR_OK;
    double x = json_is_number(v) ? json_number_value(v) : NAN;
    if (!(x >= least && x <= most))
        return err_set(ERR_PARSE, "\"%s\" must be a number from %g to %g", key, least, most);
    *out = x;
    return ERR_OK;
}

static Err whole_of(const json_t *object, const char *key, int64_t least, int64_t *out) {
    if (json_object_get(object, key) == NULL) return ERR_OK;
    return json_get_int(object, key, least, INT64_MAX, out);
}

static Err read_reset(const json_t *object, ChipReset *r) {
    static const char *const keys[] = {"load", "seed", "requests", "plans"};
    TRY(check_keys(object, keys, 4, "reset"));
    TRY(real_of(object, "load", 1e-6, 1000, &r->load));
    TRY(whole_of(object, "seed", 0, &r->seed));
    TRY(whole_of(object, "requests", 1, &r->requests));
    if (json_object_get(object, "plans") == NULL) return ERR_OK;
    return json_get_bool(object, "plans", &r->plans);
}

static Err read_plan(const json_t *object, ChipPlanCost *c) {
    static const char *const keys[] = {"macs", "weight_bytes", "ops"};
    *c = (ChipPlanCost){0};
    TRY(check_keys(object, keys, 3, "plan"));
    TRY(real_of(object, "macs", 0, COST_MOST, &c->macs));
    TRY(real_of(object, "weight_bytes", 0, COST_MOST, &c->weight_bytes));
    return real_of(object, "ops", 0, COST_MOST, &c->ops);
}

static bool index_at(const json_t *list, size_t i, uint32_t *out) {
    const json_t *v = json_array_get(list, i);
    json_int_t    x = json_is_integer(v) ? json_integer_value(v) : -1;
    *out = x >= 0 && x < CHIP_NONE ? (uint32_t)x : 0;
    return x >= 0 && x < CHIP_NONE;
}

// A cap of null is no limit.
static bool cap_at(const json_t *list, size_t i, float *out) {
    const json_t *v = json_array_get(list, i);
    double        x = json_is_null(v) ? INFINITY : json_is_number(v) ? json_number_value(v) : -1;
    *out = x > (double)FLT_MAX ? INFINITY : (float)x;
    return x > 0;
}

static bool time_at(const json_t *list, size_t i, TimeNs *out) {
    const json_t *v = json_array_get(list, i);
    *out = json_is_integer(v) ? json_integer_value(v) : 0;
    return json_is_integer(v);
}

typedef struct VerbForm {
    const char *name, *form;
    ChipVerb    verb;
    size_t      fields;
} VerbForm;

static const VerbForm forms[] = {
    {"start", "[\"start\",TASK,UNIT]", CHIP_START, 3},
    {"drop", "[\"drop\",TASK]", CHIP_DROP, 2},
    {"throttle", "[\"throttle\",UNIT,BYTES_NS], null for no limit", CHIP_THROTTLE, 3},
    {"wake", "[\"wake\",TIME_NS]", CHIP_WAKE, 2},
};
enum { FORMS = sizeof forms / sizeof *forms };

static const VerbForm *form_of(const json_t *action) {
    const char *name = json_string_value(json_array_get(action, 0));
    for (uint32_t i = 0; name != NULL && i < FORMS; i++)
        if (strcmp(forms[i].name, name) == 0) return &forms[i];
    return NULL;
}

static bool fields_of(const VerbForm *f, const json_t *list, ChipAction *out) {
    *out = (ChipAction){.verb = f->verb};
    if (json_array_size(list) != f->fields) return false;
    switch (f->verb) {
    case CHIP_START: return index_at(list, 1, &out->task) && index_at(list, 2, &out->unit);
    case CHIP_DROP: return index_at(list, 1, &out->task);
    case CHIP_THROTTLE: return index_at(list, 1, &out->unit) && cap_at(list, 2, &out->cap);
    case CHIP_WAKE: return time_at(list, 1, &out->at);
    }
    return false;
}

static Err read_actions(const json_t *list, ChipMessage *m) {
    m->n_actions = 0;
    if (json_array_size(list) > CHIP_MESSAGE_ACTIONS_MAX)
        return err_set(ERR_LIMIT, "%zu actions; one line has at most %d", json_array_size(list),
                       CHIP_MESSAGE_ACTIONS_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t   *action = json_array_get(list, i);
        const VerbForm *f = form_of(action);
        if (f == NULL)
            return err_set(ERR_PARSE, "action %zu: not start, drop, throttle or wake; as in %s", i,
                           forms[0].form);
        if (!fields_of(f, action, &m->actions[i]))
            return err_set(ERR_PARSE, "action %zu: write %s", i, f->form);
        m->n_actions++;
    }
    return ERR_OK;
}

static Err read_message(const json_t *doc, ChipMessage *m) {
    static const char *const keys[] = {"reset", "actions", "plan"};
    json_t                  *value;
    if (!json_is_object(doc) || json_object_size(doc) != 1)
        return err_set(ERR_PARSE, "a line is {\"reset\":{..}}, {\"actions\":[..]} or "
                                  "{\"plan\":{..}}, with one member");
    TRY(check_keys(doc, keys, 3, "line"));
    if (json_object_get(doc, "actions") != NULL) {
        TRY(json_get_array(doc, "actions", &value));
        m->kind = CHIP_MESSAGE_ACTIONS;
        return read_actions(value, m);
    }
    bool reset = json_object_get(doc, "reset") != NULL;
    TRY(json_get_object(doc, reset ? "reset" : "plan", &value));
    m->kind = reset ? CHIP_MESSAGE_RESET : CHIP_MESSAGE_PLAN;
    return reset ? read_reset(value, &m->reset) : read_plan(value, &m->cost);
}

Err chip_message_parse(const char *text, size_t len, ChipMessage *out) {
    json_t *doc = NULL;
    TRY(json_parse("line", text, len, &doc));
    Err e = read_message(doc, out);
    json_decref(doc);
    return e;
}

// Whether one of the first n actions starts or drops the task.
static bool task_taken(const ChipMessage *m, uint32_t n, uint32_t task) {
    for (uint32_t i = 0; i < n; i++) {
        ChipVerb v = m->actions[i].verb;
        if ((v == CHIP_START || v == CHIP_DROP) && m->actions[i].task == task) return true;
    }
    return false;
}

static bool unit_taken(const ChipMessage *m, uint32_t n, uint32_t unit) {
    for (uint32_t i = 0; i < n; i++)
        if (m->actions[i].verb == CHIP_START && m->actions[i].unit == unit) return true;
    return false;
}

static Err check_task(const ChipMessage *m, uint32_t i, const ChipView *v) {
    uint32_t task = m->actions[i].task;
    if (task >= v->n_tasks)
        return err_set(ERR_ARG, "action %u: no task %u; there are %u, numbered from 0", i, task,
                       v->n_tasks);
    if (v->tasks[task].unit != CHIP_NONE)
        return err_set(ERR_ARG,
                       "action %u: task %u runs on unit %u; only waiting tasks start or "
                       "are dropped",
                       i, task, v->tasks[task].unit);
    if (task_taken(m, i, task))
        return err_set(ERR_ARG, "action %u: an earlier action starts or drops task %u", i, task);
    return ERR_OK;
}

static Err check_unit(const ChipView *v, uint32_t i, uint32_t unit) {
    if (unit < v->setup->n_units) return ERR_OK;
    return err_set(ERR_ARG, "action %u: no unit %u; there are %u, numbered from 0", i, unit,
                   v->setup->n_units);
}

static Err check_start(const ChipMessage *m, uint32_t i, const ChipView *v) {
    const ChipAction *x = &m->actions[i];
    TRY(check_task(m, i, v));
    TRY(check_unit(v, i, x->unit));
    if (v->units[x->unit].task != CHIP_NONE || unit_taken(m, i, x->unit))
        return err_set(ERR_ARG, "action %u: unit %u is not free", i, x->unit);
    const ChipTask  *t = &v->tasks[x->task];
    const ChipModel *model = v->setup->tenants[t->request.tenant].model;
    if (isfinite(chip_cost(model, t->layer, v->setup->kind_of[x->unit])->ns)) return ERR_OK;
    return err_set(ERR_ARG, "action %u: unit %u cannot compute layer %u of %s", i, x->unit,
                   t->layer, model->name);
}

static Err check_throttle(const ChipMessage *m, uint32_t i, const ChipView *v) {
    const ChipAction *x = &m->actions[i];
    double            least = CAP_LEAST * (double)v->setup->bytes_ns;
    TRY(check_unit(v, i, x->unit));
    if (v->units[x->unit].task == CHIP_NONE && !unit_taken(m, i, x->unit))
        return err_set(ERR_ARG, "action %u: unit %u is free; only running layers are throttled", i,
                       x->unit);
    if ((double)x->cap >= least) return ERR_OK;
    return err_set(ERR_ARG, "action %u: a cap of %g bytes/ns; the least is %g", i, (double)x->cap,
                   least);
}

static Err check_wake(const ChipAction *x, uint32_t i, const ChipView *v) {
    if (x->at > v->now && x->at - v->now <= WAKE_MOST_NS) return ERR_OK;
    return err_set(ERR_ARG,
                   "action %u: a wake-up at %" PRId64 "; now is %" PRId64
                   ", and it is later by at most %" PRId64,
                   i, x->at, v->now, WAKE_MOST_NS);
}

Err chip_message_check(const ChipMessage *m, const ChipView *view) {
    for (uint32_t i = 0; i < m->n_actions; i++) {
        const ChipAction *x = &m->actions[i];
        switch (x->verb) {
        case CHIP_START: TRY(check_start(m, i, view)); break;
        case CHIP_DROP: TRY(check_task(m, i, view)); break;
        case CHIP_THROTTLE: TRY(check_throttle(m, i, view)); break;
        case CHIP_WAKE: TRY(check_wake(x, i, view)); break;
        }
    }
    return ERR_OK;
}
