#include "loadgen/bench_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/option_list.h"

enum { ARRIVALS_BYTES = 256 << 20 };

Err bench_time(const char *option, const char *text, double bare, TimeNs *out) {
    const struct {
        const char *name;
        double      ns;
    } units[] = {{"", bare}, {"ms", 1e6}, {"us", 1e3}, {"s", 1e9}, {"min", 6e10}};
    char  *end = NULL;
    double v = strtod(text, &end);
    for (size_t i = 0; end != text && i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].name) != 0) continue;
        if (!(v > 0) || v * units[i].ns > 1e17) break;
        *out = (TimeNs)(v * units[i].ns);
        return ERR_OK;
    }
    return err_set(ERR_ARG, "--%s: '%s' is not a time like 50ms, 0.5s or 200us", option, text);
}

static BenchModel *find(Bench *b, const char *name, size_t len) {
    for (uint32_t i = 0; i < b->n_models; i++)
        if (strlen(b->models[i].name) == len && memcmp(b->models[i].name, name, len) == 0)
            return &b->models[i];
    return NULL;
}

static Err add(Bench *b, const char *name, double weight) {
    if (find(b, name, strlen(name)) != NULL)
        return err_set(ERR_ARG, "--models: '%s' is named twice", name);
    if (b->n_models == BENCH_MODELS)
        return err_set(ERR_ARG, "--models: more than %d models", BENCH_MODELS);
    if (*name == '\0' || strlen(name) > 255)
        return err_set(ERR_ARG, "--models: '%.40s' is no name", name);
    b->models[b->n_models++] = (BenchModel){.name = name, .weight = weight};
    return ERR_OK;
}

Err bench_models(const char *text, Arena *a, Bench *b, uint32_t *rated) {
    const char **words = NULL;
    uint32_t     n = 0;
    *rated = 0;
    TRY(option_list_words("models", text, a, &words, &n));
    for (uint32_t i = 0; i < n; i++) {
        const char *mark = strrchr(words[i], ':');
        char       *end = NULL;
        double      rate = mark == NULL ? 1 : strtod(mark + 1, &end);
        if (mark != NULL && (end == mark + 1 || *end != '\0' || !(rate > 0 && rate <= 1e7)))
            return err_set(ERR_ARG, "--models %s: '%s' is no rate", words[i], mark + 1);
        size_t len = mark == NULL ? strlen(words[i]) : (size_t)(mark - words[i]);
        TRY(add(b, arena_printf(a, "%.*s", (int)len, words[i]), rate));
        *rated += mark != NULL;
    }
    return ERR_OK;
}

// Calls set for each model that a word of the list is about, with what the word says.
static Err each(const char *option, const char *text, Arena *a, Bench *b, void *self,
                Err (*set)(void *self, BenchModel *m, const char *value)) {
    const char **words = NULL;
    uint32_t     n = 0;
    TRY(option_list_words(option, text, a, &words, &n));
    for (uint32_t i = 0; i < n; i++) {
        const char *mark = strrchr(words[i], ':');
        if (mark == NULL) {
            for (uint32_t k = 0; k < b->n_models; k++) TRY(set(self, &b->models[k], words[i]));
            continue;
        }
        BenchModel *m = find(b, words[i], (size_t)(mark - words[i]));
        if (m == NULL)
            return err_set(ERR_ARG, "--%s %s: no such model is asked for", option, words[i]);
        TRY(set(self, m, mark + 1));
    }
    return ERR_OK;
}

typedef struct SetTime {
    const char *option;
    void (*set)(BenchModel *m, TimeNs t);
} SetTime;

static Err set_time(void *self, BenchModel *m, const char *value) {
    const SetTime *s = self;
    TimeNs         t = 0;
    TRY(bench_time(s->option, value, 1e6, &t));
    s->set(m, t);
    return ERR_OK;
}

Err bench_each_time(const char *option, const char *text, Arena *a, Bench *b,
                    void (*set)(BenchModel *m, TimeNs t)) {
    SetTime s = {option, set};
    return text == NULL ? ERR_OK : each(option, text, a, b, &s, set_time);
}

typedef struct SetNumber {
    const char *option;
    void (*set)(BenchModel *m, int64_t n);
} SetNumber;

static Err set_number(void *self, BenchModel *m, const char *value) {
    const SetNumber *s = self;
    char            *end = NULL;
    errno = 0;
    long long v = strtoll(value, &end, 10);
    if (errno != 0 || end == value || *end != '\0' || v < 0)
        return err_set(ERR_ARG, "--%s: '%s' is not a whole number", s->option, value);
    s->set(m, v);
    return ERR_OK;
}

Err bench_each_number(const char *option, const char *text, Arena *a, Bench *b,
                      void (*set)(BenchModel *m, int64_t n)) {
    SetNumber s = {option, set};
    return text == NULL ? ERR_OK : each(option, text, a, b, &s, set_number);
}

static int by_time(const void *x, const void *y) {
    const BenchArrival *a = x, *b = y;
    return (a->at > b->at) - (a->at < b->at);
}

static Err read_row(const Csv *c, Arena *a, Bench *b, BenchArrival *out) {
    char  *end = NULL;
    double s = strtod(c->field[0], &end);
    if (c->n < 2 || end == c->field[0] || *end != '\0' || !(s >= 0 && s < 1e7))
        return err_set(ERR_PARSE, "%s:%zu: a row is seconds,model", c->name, c->line);
    if (find(b, c->field[1], strlen(c->field[1])) == NULL) {
        Err e = add(b, arena_str(a, c->field[1]), 1);
        if (e != ERR_OK) return err_add(ERR_PARSE, "%s:%zu", c->name, c->line);
    }
    *out = (BenchArrival){(TimeNs)(s * 1e9),
                          (uint32_t)(find(b, c->field[1], strlen(c->field[1])) - b->models)};
    return ERR_OK;
}

Err bench_arrivals(const char *path, Arena *a, Bench *b, BenchArrival **out, uint64_t *n) {
    char    *text = NULL;
    size_t   len = 0;
    uint64_t rows = 1, got = 0;
    Csv      c;
    bool     more = true;
    TRY(file_read(path, ARRIVALS_BYTES, a, &text, &len));
    for (size_t i = 0; i < len; i++) rows += text[i] == '\n';
    BenchArrival *list = arena_try_new(a, BenchArrival, rows);
    if (list == NULL) return err_set(ERR_LIMIT, "%s: too many arrivals", path);
    TRY(csv_open(&c, path, text, len, ',', true));
    for (;;) {
        TRY(csv_next(&c, &more));
        if (!more) break;
        bool head = c.line == 1 && strcmp(c.field[0], "seconds") == 0;
        if (head || (c.n == 1 && c.field[0][0] == '\0')) continue;
        TRY(read_row(&c, a, b, &list[got++]));
    }
    if (got == 0) return err_set(ERR_PARSE, "%s: no arrivals", path);
    qsort(list, got, sizeof *list, by_time);
    *out = list;
    *n = got;
    return ERR_OK;
}
