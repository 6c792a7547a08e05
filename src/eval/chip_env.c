#include "eval/chip_env.h"

#include <math.h>

enum {
    IDLE_CALLS = 500,         // in a row with nothing running and no arrival left
    PLAN_PERIODS_MOST = 1000  // that a plan takes
};

typedef struct Session Session;

typedef struct Handle {  // the settings, and the state, of the policy
    Session *session;
} Handle;

struct Session {
    const ChipEnv *env;
    Arena         *arena;
    LineReader     lines;
    ChipMessage    message;
    ChipReset      next;
    bool           has_next, ended;  // a reset was read; the client's lines have ended
    // of the episode
    ChipRun       run;
    Handle        handle;
    RecordList    records;
    RecordSink    keep;     // into records
    EndedRequest *answers;  // [trace.n]
    uint32_t      n_answers, arrived, idle;
    bool          abandoned, committed;
};

static void complain(Session *s, const char *message) {
    chip_observation_error(s->env->out, s->lines.line, message);
}

// The next line that is a message; false at the end of input. Other lines get an error line.
static bool read_message(Session *s) {
    for (;;) {
        const char *text = NULL;
        size_t      len = 0;
        LineResult  r = line_reader_next(&s->lines, &text, &len);
        if (r == LINE_END || ferror(s->env->out)) return false;
        s->message.reset = s->next;
        if (r == LINE_TOO_LONG)
            (void)err_set(ERR_LIMIT, "a line of more than %d bytes; it was skipped",
                          LINE_READER_BYTES);
        else if (chip_message_parse(text, len, &s->message) == ERR_OK)
            return true;
        complain(s, err_why());
    }
}

static bool take_reset(Session *s) {
    const ChipReset *r = &s->message.reset;
    bool             fits = r->requests <= s->env->requests_most;
    if (!fits) complain(s, "\"requests\": too many for one episode");
    if (!fits) return false;
    s->next = *r;
    s->has_next = true;
    return true;
}

// The client's answer to a call of the policy; false if the episode is abandoned.
static bool read_answer(Session *s, ChipMessageKind want) {
    for (;;) {
        s->ended = !read_message(s);
        s->abandoned = s->ended || (s->message.kind == CHIP_MESSAGE_RESET && take_reset(s));
        if (s->abandoned) return false;
        if (s->message.kind == want) return true;
        if (s->message.kind != CHIP_MESSAGE_RESET)
            complain(s, want == CHIP_MESSAGE_PLAN ? "a line of type plan is answered by \"plan\""
                                                  : "an observation is answered by \"actions\"");
    }
}

static void observe(Session *s, const ChipView *v, bool plan) {
    ChipObservation o = {.view = v,
                         .plan = plan,
                         .committed = s->committed,
                         .ended = s->answers,
                         .n_ended = s->n_answers};
    chip_observation_write(s->env->out, &o);
    (void)fflush(s->env->out);
    s->n_answers = 0;
    s->committed = false;
}

static uint32_t count(const ChipMessage *m, ChipVerb verb) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_actions; i++) n += m->actions[i].verb == verb;
    return n;
}

// The engine has nothing to wait for but what the policy asks for.
static bool idle(const Session *s, const ChipView *v) {
    return v->n_free == v->setup->n_units && s->arrived == s->run.trace.n && v->n_tasks > 0;
}

// Rejects answers after which the run could not go on, or would not end.
static Err check_progress(Session *s, const ChipView *v) {
    const ChipMessage *m = &s->message;
    uint32_t           starts = count(m, CHIP_START), drops = count(m, CHIP_DROP);
    if (!idle(s, v) || starts > 0 || drops == v->n_waiting) {
        s->idle = 0;
        return ERR_OK;
    }
    bool goes_on = count(m, CHIP_WAKE) > 0 || v->setup->firm || s->run.policy->plan != NULL;
    if (goes_on && s->idle++ < IDLE_CALLS) return ERR_OK;
    return err_set(ERR_ARG, "nothing runs and no request will arrive: start a task or drop all");
}

static uint32_t drop_all(const ChipView *v, ChipAction *out, uint32_t max) {
    uint32_t n = 0;
    for (; n < v->n_waiting && n < max; n++)
        out[n] = (ChipAction){.verb = CHIP_DROP, .task = v->waiting[n]};
    return n;
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Session *s = ((Handle *)state)->session;
    if (s->abandoned) return drop_all(v, out, max);
    observe(s, v, false);
    while (read_answer(s, CHIP_MESSAGE_ACTIONS)) {
        const ChipMessage *m = &s->message;
        if (m->n_actions < max && chip_message_check(m, v) == ERR_OK &&
            check_progress(s, v) == ERR_OK) {
            for (uint32_t i = 0; i < m->n_actions; i++) out[i] = m->actions[i];
            return m->n_actions;
        }
        complain(s, err_why());
    }
    return drop_all(v, out, max);
}

static bool soon(const Session *s, const ChipPlanCost *x) {
    const ChipController *c = &s->run.controller;
    double                ns = 0;
    if (c->mac_ns > 0) ns += x->macs / c->mac_ns;
    if (c->op_ns > 0) ns += x->ops / c->op_ns;
    return ns <= (double)s->run.setup.period * PLAN_PERIODS_MOST;
}

static void plan(void *state, const ChipView *v, ChipPlanCost *cost) {
    Session *s = ((Handle *)state)->session;
    *cost = (ChipPlanCost){0};
    if (s->abandoned) return;
    observe(s, v, true);
    while (read_answer(s, CHIP_MESSAGE_PLAN)) {
        *cost = s->message.cost;
        if (soon(s, cost)) return;
        *cost = (ChipPlanCost){0};
        complain(s, "the plan would take more than 1000 periods");
    }
}

static void commit(void *state) { ((Handle *)state)->session->committed = true; }

static size_t state_size(const ChipSetup *setup, const void *settings) {
    (void)setup;
    (void)settings;
    return sizeof(Handle);
}

static void init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    (void)setup;
    (void)loaded;
    *(Handle *)state = *(const Handle *)settings;
}

#define POLICY                                                                                     \
    .name = "env", .about = "a client of cotenant chip env", .settings_size = sizeof(Handle),      \
    .state_size = state_size, .init = init, .decide = decide

static const ChipPolicy dispatcher = {POLICY};
static const ChipPolicy planner = {POLICY, .plan = plan, .commit = commit};

static void on_record(void *self, const Record *r) {
    Session *s = self;
    record_put(s->keep, r);
    if (r->kind == RECORD_ARRIVE) s->arrived++;
    if (r->kind == RECORD_FINISH || r->kind == RECORD_REJECT)
        s->answers[s->n_answers++] = (EndedRequest){r->request, r->tenant, r->outcome, r->at};
}

static Err finish(Session *s, const ChipTraffic *t, const ChipResult *r) {
    ChipSummary    sum;
    const ChipEnv *env = s->env;
    TRY(chip_summary(&s->run, r, CHIP_NONE, s->arena, &sum));
    if (env->keep != NULL) TRY(env->keep(env->keeper, &s->run, t, &s->records));
    return chip_observation_done(env->out, r, &sum, s->answers, s->n_answers);
}

static Err open_run(Session *s, const ChipTraffic *t, bool plans) {
    const ChipEnv *env = s->env;
    ChipTrace      trace;
    TRY(chip_scenario_trace(env->scenario, t, s->arena, &trace));
    s->records = (RecordList){.arena = s->arena};
    s->keep = env->keep != NULL ? record_list(&s->records) : (RecordSink){0};
    s->answers = arena_try_new(s->arena, EndedRequest, trace.n);
    if (s->answers == NULL) return err_set(ERR_LIMIT, "no memory for %u requests", trace.n);
    s->n_answers = s->arrived = s->idle = 0;
    s->abandoned = s->committed = false;
    s->handle.session = s;
    s->run = chip_scenario_run(env->scenario, trace);
    s->run.policy = plans ? &planner : &dispatcher;
    s->run.settings = &s->handle;
    s->run.seed = t->seed;
    s->run.records = (RecordSink){on_record, s};
    return ERR_OK;
}

static Err play(Session *s, const ChipReset *reset) {
    ChipTraffic t = s->env->traffic;
    ChipResult  r;
    t.load = reset->load;
    t.seed = (uint64_t)reset->seed;
    t.requests = (uint32_t)reset->requests;
    TRY(open_run(s, &t, reset->plans));
    TRY(chip_simulate(&s->run, s->arena, &r));
    return s->abandoned ? ERR_OK : finish(s, &t, &r);
}

// Between episodes, only a reset goes on.
static bool await_reset(Session *s) {
    while (!s->has_next) {
        if (!read_message(s)) return false;
        if (s->message.kind != CHIP_MESSAGE_RESET)
            complain(s, "no episode runs; {\"reset\":{}} starts one");
        else
            (void)take_reset(s);
    }
    s->has_next = false;
    return true;
}

static Err written(const ChipEnv *env) {
    if (!ferror(env->out)) return ERR_OK;
    return err_set(ERR_IO, "writing to the client failed: it has gone");
}

static Err serve(Session *s) {
    const ChipEnv *env = s->env;
    ChipReset      defaults = s->next;
    TRY(chip_observation_hello(env->out, env->scenario, &defaults));
    while (!s->ended && await_reset(s)) {
        size_t    mark = s->arena->used;
        ChipReset reset = s->next;
        s->next = defaults;
        Err e = play(s, &reset);
        arena_rewind(s->arena, mark);
        TRY(written(env));
        if (e == ERR_IO) return e;
        if (e != ERR_OK) complain(s, err_why());
    }
    return written(env);
}

Err chip_env_run(const ChipEnv *env, Arena *a) {
    Session *s = arena_try_new(a, Session, 1);
    if (s == NULL) return err_set(ERR_LIMIT, "no memory for a client's lines");
    *s = (Session){.env = env,
                   .arena = a,
                   .next = {.load = env->traffic.load,
                            .seed = (int64_t)env->traffic.seed,
                            .requests = env->traffic.requests}};
    line_reader_init(&s->lines, env->read, env->reader);
    return serve(s);
}
