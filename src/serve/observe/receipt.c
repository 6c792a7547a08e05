#include "serve/observe/receipt.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct EndRow {
    const char *name, *about;
    uint32_t    status, grpc;
} EndRow;

static const EndRow ends[] = {
#define X(id, name, status, grpc, about) {name, about, status, grpc},
#include "serve/observe/receipt_end.def"
#undef X
};

static const char *const cause_names[] = {
#define X(id, name, about, advice) name,
#include "serve/observe/receipt_cause.def"
#undef X
};

static const char *const cause_abouts[] = {
#define X(id, name, about, advice) about,
#include "serve/observe/receipt_cause.def"
#undef X
};

static const char *const cause_advices[] = {
#define X(id, name, about, advice) advice,
#include "serve/observe/receipt_cause.def"
#undef X
};

static const char *const outcome_names[] = {"met", "missed", "rejected", "none"};

const char *receipt_end_name(ReceiptEnd e) { return ends[e].name; }
const char *receipt_end_about(ReceiptEnd e) { return ends[e].about; }
uint32_t    receipt_http_status(ReceiptEnd e) { return ends[e].status; }
uint32_t    receipt_grpc_status(ReceiptEnd e) { return ends[e].grpc; }
const char *receipt_outcome_name(ReceiptOutcome o) { return outcome_names[o]; }
const char *receipt_cause_name(ReceiptCause c) { return cause_names[c]; }
const char *receipt_advice(ReceiptCause c) { return cause_advices[c]; }

static TimeNs last(const Receipt *r) {
    if (r->answered > 0) return r->answered;
    if (r->finished > 0) return r->finished;
    TimeNs at = r->decoded > 0 ? r->decoded : r->arrived;
    if (r->submitted > at) at = r->submitted;
    return r->end == RECEIPT_EXPIRED && r->expire > at ? r->expire : at;
}

TimeNs receipt_latency(const Receipt *r) {
    TimeNs t = last(r) - r->arrived;
    return t > 0 ? t : 0;
}

ReceiptOutcome receipt_outcome(const Receipt *r) {
    if (r->deadline == 0) return RECEIPT_NO_OUTCOME;
    switch (r->end) {
    case RECEIPT_OK: return r->met ? RECEIPT_OUTCOME_MET : RECEIPT_OUTCOME_MISSED;
    case RECEIPT_EXPIRED:
    case RECEIPT_FAILED:
    case RECEIPT_STUCK: return RECEIPT_OUTCOME_MISSED;
    case RECEIPT_FULL:
    case RECEIPT_REJECTED:
    case RECEIPT_UNREADY:
    case RECEIPT_QUARANTINED:
    case RECEIPT_MEMORY: return RECEIPT_OUTCOME_REJECTED;
    case RECEIPT_BAD:
    case RECEIPT_UNKNOWN:
    case RECEIPT_LARGE:
    case RECEIPT_CANCELLED:
    case RECEIPT_ENDS: break;
    }
    return RECEIPT_NO_OUTCOME;
}

// Length of a stage; 0 if the request did not get there.
static TimeNs between(TimeNs from, TimeNs to) { return from > 0 && to > from ? to - from : 0; }

static TimeNs decoding(const Receipt *r) { return between(r->arrived, r->decoded); }

static TimeNs compiling(const Receipt *r) {
    return between(r->decoded, r->submitted > 0 ? r->submitted : last(r));
}

TimeNs receipt_queued(const Receipt *r) {
    TimeNs before = between(r->arrived, r->submitted);
    return r->timing.queue_ns > before ? r->timing.queue_ns - before : 0;
}

// Time that other processes cost it: in its blocks, and in the queue.
static TimeNs queue_stolen(const Receipt *r) {
    TimeNs queued = receipt_queued(r);
    return r->timing.queue_stolen_ns < queued ? r->timing.queue_stolen_ns : queued;
}

static TimeNs answering(const Receipt *r) { return between(r->finished, r->answered); }

// Of decoding and answering: the loop waited for a CPU.
static TimeNs front_stolen(const Receipt *r) {
    TimeNs front = decoding(r) + answering(r);
    return r->loop_delay_ns < front ? r->loop_delay_ns : front;
}

// Refines queueing to overload and system to throttled, which only the engine can tell apart.
static ReceiptCause refine(const Receipt *r, ReceiptCause c) {
    if (c == RECEIPT_CAUSE_QUEUEING && r->timing.late_cause == LIVE_OVERLOAD)
        return RECEIPT_CAUSE_OVERLOAD;
    if (c == RECEIPT_CAUSE_SYSTEM && r->timing.late_cause == LIVE_THROTTLED)
        return RECEIPT_CAUSE_THROTTLED;
    return c;
}

// The longest avoidable stage; COMPUTE if computing alone exceeds the deadline.
static ReceiptCause late_cause(const Receipt *r) {
    const LiveTiming *t = &r->timing;
    TimeNs bare = t->compute_ns - t->interference_ns - t->core_shortage_ns - t->stolen_ns, most = 0;
    ReceiptCause cause = RECEIPT_CAUSE_COMPUTE;
    const struct {
        ReceiptCause cause;
        TimeNs       ns;
    } parts[] = {{RECEIPT_CAUSE_QUEUEING, receipt_queued(r) - queue_stolen(r)},
                 {RECEIPT_CAUSE_PREEMPTED, t->paused_ns},
                 {RECEIPT_CAUSE_CONTENTION, t->interference_ns},
                 {RECEIPT_CAUSE_CONFLICT, t->core_shortage_ns},
                 {RECEIPT_CAUSE_SYSTEM, t->stolen_ns + queue_stolen(r) + front_stolen(r)},
                 {RECEIPT_CAUSE_COMPILING, compiling(r)},
                 {RECEIPT_CAUSE_FRONTEND, decoding(r) + answering(r) - front_stolen(r)}};
    if (r->deadline > r->arrived && bare > r->deadline - r->arrived) return cause;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].ns > most) most = parts[i].ns, cause = parts[i].cause;
    return r->decoded == 0 ? RECEIPT_CAUSE_FRONTEND : refine(r, cause);
}

ReceiptCause receipt_cause(const Receipt *r) {
    ReceiptOutcome o = receipt_outcome(r);
    if (o == RECEIPT_OUTCOME_MET || o == RECEIPT_NO_OUTCOME) return RECEIPT_CAUSE_NONE;
    switch (r->end) {
    case RECEIPT_FULL: return RECEIPT_CAUSE_QUEUE_FULL;
    case RECEIPT_REJECTED: return RECEIPT_CAUSE_REJECTED;
    case RECEIPT_FAILED:
    case RECEIPT_STUCK: return RECEIPT_CAUSE_FAILED;
    case RECEIPT_UNREADY:
    case RECEIPT_QUARANTINED:
    case RECEIPT_MEMORY: return RECEIPT_CAUSE_UNAVAILABLE;
    default: return late_cause(r);
    }
}

typedef struct Sentence {
    char  *out;
    size_t size, len;
} Sentence;

static void PRINTF(2, 3) say(Sentence *w, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(w->out + w->len, w->size - w->len, fmt, ap);
    va_end(ap);
    if (n <= 0) return;
    size_t room = w->size - w->len - 1;
    w->len += (size_t)n < room ? (size_t)n : room;
}

// Milliseconds with two or three significant digits: 0.21, 12.3, 480.
static const char *ms(TimeNs t, char out[24]) {
    double x = (double)t / 1e6;
    (void)snprintf(out, 24, "%.*f", x < 1 ? 2 : x < 100 ? 1 : 0, x);
    char *end = out + strlen(out);
    if (strchr(out, '.') != NULL)
        while (end[-1] == '0') *--end = '\0';
    if (end[-1] == '.') *--end = '\0';
    return out;
}

static bool matters(const Receipt *r, TimeNs t) {
    return t > 100000 && t * 20 > receipt_latency(r);
}

// The share of the CPU that others had, where they are the cause.
static void say_taken(Sentence *w, const Receipt *r) {
    const LiveTiming *t = &r->timing;
    char              text[24], all[24];
    if (!matters(r, queue_stolen(r))) return;
    say(w, ", %s ms of it because other programs took", ms(queue_stolen(r), text));
    say(w, " %s ms of %s ms of CPU", ms(t->taken_ns, text), ms(t->taken_of_ns, all));
}

static void say_queue(Sentence *w, const Receipt *r) {
    char text[24];
    if (!matters(r, receipt_queued(r))) return;
    say(w, "; queued %s ms", ms(receipt_queued(r), text));
    if (r->behind != NULL) say(w, " behind model '%s'", r->behind);
    if (r->timing.waiting > 0) say(w, " (%u waited before it)", r->timing.waiting);
    say_taken(w, r);
}

static void say_compute(Sentence *w, const Receipt *r) {
    const LiveTiming *t = &r->timing;
    char              text[24];
    if (t->blocks == 0) return;
    say(w, "; computed %s ms on %u", ms(t->compute_ns, text), t->cores_least);
    if (t->cores_most > t->cores_least) say(w, " to %u", t->cores_most);
    say(w, t->cores_most > 1 ? " cores" : " core");
    if (matters(r, t->interference_ns))
        say(w, ", %s ms of it by interference (level %u)", ms(t->interference_ns, text), t->level);
    if (matters(r, t->core_shortage_ns))
        say(w, ", %s ms by too few cores", ms(t->core_shortage_ns, text));
    if (matters(r, t->stolen_ns))
        say(w, ", %s ms of it while other programs ran on its cores", ms(t->stolen_ns, text));
}

static void say_pauses(Sentence *w, const Receipt *r) {
    char text[24];
    if (!matters(r, r->timing.paused_ns)) return;
    say(w, "; paused %s ms", ms(r->timing.paused_ns, text));
    if (r->paused_by != NULL) say(w, " for model '%s'", r->paused_by);
}

static void say_front(Sentence *w, const Receipt *r) {
    char text[24];
    if (matters(r, decoding(r))) say(w, "; decoded in %s ms", ms(decoding(r), text));
    if (matters(r, compiling(r)))
        say(w, "; waited %s ms for its shapes to compile", ms(compiling(r), text));
}

static void say_stages(Sentence *w, const Receipt *r) {
    char   text[24];
    size_t before = w->len;
    say_front(w, r);
    if (r->timing.degraded) say(w, "; degraded: ran behind all other requests");
    say_queue(w, r);
    say_compute(w, r);
    say_pauses(w, r);
    if (matters(r, answering(r))) say(w, "; response sent %s ms later", ms(answering(r), text));
    if (matters(r, front_stolen(r)))
        say(w, "; other programs took %s ms of the server's front end", ms(front_stolen(r), text));
    if (w->len > before) w->out[before] = ':';
}

static void say_late(Sentence *w, const Receipt *r) {
    char   over[24], given[24];
    TimeNs late = last(r) - r->deadline;
    say(w, "late by %s ms of %s", ms(late > 0 ? late : 0, over),
        ms(between(r->arrived, r->deadline), given));
    say_stages(w, r);
}

static void say_where(Sentence *w, const Receipt *r) {
    const LiveTiming *t = &r->timing;
    bool              paused = t->blocks > 0 && t->paused_ns > t->compute_ns;
    if (r->decoded == 0)
        say(w, " while decoding");
    else if (r->submitted == 0)
        say(w, " while compiling its shapes");
    else if (t->blocks == 0 && r->behind != NULL)
        say(w, " while queued behind model '%s'", r->behind);
    else if (t->blocks == 0)
        say(w, " while queued");
    else if (paused && r->paused_by != NULL)
        say(w, " while paused for model '%s'", r->paused_by);
    else
        say(w, paused ? " while paused" : " while computing");
}

static void say_expired(Sentence *w, const Receipt *r) {
    TimeNs given = between(r->arrived, r->expire > 0 ? r->expire : r->deadline);
    say(w, "deadline of %lld us passed after %lld us", (long long)(given / 1000),
        (long long)(receipt_latency(r) / 1000));
    say_where(w, r);
    if (r->timing.blocks > 0) say_stages(w, r);
}

static void say_missed(Sentence *w, const Receipt *r, const char *about) {
    say(w, "%s", about);
    if (r->submitted > 0) say_stages(w, r);
}

void receipt_explain(Receipt *r) {
    Sentence     w = {r->cause, sizeof r->cause, 0};
    ReceiptCause c = receipt_cause(r);
    r->cause[0] = '\0';
    if (r->end == RECEIPT_EXPIRED)
        say_expired(&w, r);
    else if (r->end == RECEIPT_OK && c != RECEIPT_CAUSE_NONE)
        say_late(&w, r);
    else if (c != RECEIPT_CAUSE_NONE)
        say_missed(&w, r, cause_abouts[c]);
    else if (r->end != RECEIPT_OK)
        say(&w, "%s", ends[r->end].about);
}
