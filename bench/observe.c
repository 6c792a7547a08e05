// What does observability cost? The receipt, history entry and log line of a request; a scrape by
// number of models.
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "serve/observe/request_history.h"
#include "serve/observe/logger.h"
#include "serve/observe/metrics.h"

enum { REQUESTS = 200000, SCRAPES = 20, MODELS = 1000 };

static char names[MODELS][16];

static Receipt late(uint32_t i) {
    Receipt r = {.slot = i % MODELS,
                 .model = names[i % MODELS],
                 .version = "1",
                 .arrived = 1000000,
                 .decoded = 1100000,
                 .submitted = 1200000,
                 .finished = 60000000,
                 .answered = 60100000 + i,
                 .deadline = 50000000,
                 .behind = "big",
                 .timing = {.queue_ns = 40000000,
                            .compute_ns = 18000000,
                            .blocks = 4,
                            .cores_least = 1,
                            .cores_most = 2,
                            .waiting = 3}};
    (void)snprintf(r.id, sizeof r.id, "r-%" PRIu32, i);
    return r;
}

// CPU time of this thread, so that other load does not count.
static TimeNs used(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (TimeNs)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void tell(const char *what, TimeNs start, uint32_t n) {
    printf("%-28s %10.0f ns\n", what, (double)(used() - start) / n);
}

static Err notes(Metrics *m) {
    RequestHistory *l = NULL;
    Logger         *g = NULL;
    TRY(request_history_create(&l, 4096));
    TRY(logger_create(&g, &(LoggerOptions){.file = "/dev/null"}));
    TimeNs start = used();
    for (uint32_t i = 0; i < REQUESTS; i++) {
        Receipt r = late(i);
        metrics_note(m, &r);
    }
    tell("metrics, one request", start, REQUESTS);
    start = used();
    for (uint32_t i = 0; i < REQUESTS; i++) {
        Receipt r = late(i);
        request_history_add(l, &r);
    }
    tell("history, one request", start, REQUESTS);
    start = used();
    for (uint32_t i = 0; i < REQUESTS; i++) {
        Receipt r = late(i);
        receipt_explain(&r);
    }
    tell("explanation of a miss", start, REQUESTS);
    start = used();
    for (uint32_t i = 0; i < REQUESTS; i++)
        log_with(logger_log(g), LOG_INFO, "request", log_text("id", "r-1"), log_real("ms", 1.25));
    tell("log line beyond the rate", start, REQUESTS);
    logger_destroy(g);
    request_history_destroy(l);
    return ERR_OK;
}

static Err scrapes(uint32_t models, Arena *a) {
    Metrics   *m = NULL;
    MetricsNow now = {0};
    Str        text = {0};
    char       what[64];
    TRY(metrics_create(&m, true));
    for (uint32_t i = 0; i < models; i++) metrics_register(m, i, names[i], "1", 50000000, 99);
    TimeNs start = used();
    for (int i = 0; i < SCRAPES; i++) {
        arena_rewind(a, 0);
        TRY(metrics_text(m, &now, a, &text));
    }
    (void)snprintf(what, sizeof what, "scrape of %" PRIu32 ", %zu bytes", models, text.len);
    tell(what, start, SCRAPES);
    metrics_destroy(m);
    return ERR_OK;
}

static Err measure(Arena *a) {
    Metrics *m = NULL;
    TRY(metrics_create(&m, false));
    for (uint32_t i = 0; i < MODELS; i++) {
        (void)snprintf(names[i], sizeof names[i], "model%" PRIu32, i);
        metrics_register(m, i, names[i], "1", 50000000, 99);
    }
    TRY(notes(m));
    metrics_destroy(m);
    for (uint32_t models = 1; models <= MODELS; models *= 10) TRY(scrapes(models, a));
    return ERR_OK;
}

int main(void) {
    Arena a = {0};
    Err   e = arena_init(&a, (size_t)256 << 20);
    if (e == ERR_OK) e = measure(&a);
    arena_finish(&a);
    if (e != ERR_OK) (void)fprintf(stderr, "%s\n", err_why());
    return e != ERR_OK;
}
