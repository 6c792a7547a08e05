#include "base/term.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool term_is_tty(FILE *f) { return fileno(f) >= 0 && isatty(fileno(f)) == 1; }

bool term_has_colour(FILE *f) {
    const char *no = getenv("NO_COLOR"), *kind = getenv("TERM");
    if (no != NULL && no[0] != '\0') return false;
    return term_is_tty(f) && kind != NULL && strcmp(kind, "dumb") != 0;
}

uint32_t term_columns(FILE *f) {
    struct winsize size = {0};
    if (!term_is_tty(f) || ioctl(fileno(f), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

enum { REDRAW_NS = 100000000, BAR_MIN = 4, BAR_MAX = 30 };

static void span_text(TimeNs ns, char *out, size_t size) {
    int64_t s = ns <= 0 ? 0 : (ns + 500000000) / 1000000000;
    if (s < 60)
        (void)snprintf(out, size, "%" PRId64 "s", s);
    else if (s < 3600)
        (void)snprintf(out, size, "%" PRId64 "m%02ds", s / 60, (int)(s % 60));
    else
        (void)snprintf(out, size, "%" PRId64 "h%02dm", s / 3600, (int)(s / 60 % 60));
}

static double share(const Progress *p) {
    if (p->total <= 0 || p->done >= p->total) return 1;
    return (double)p->done / (double)p->total;
}

// "30%  12/40  eta 9s", or the total time at the end.
static void state_text(const Progress *p, TimeNs now, char *out, size_t size) {
    char   span[32] = "?";
    double spent = (double)(now - p->start), part = share(p);
    bool   over = part >= 1;
    double left = p->done > 0 && !over ? spent / part * (1 - part) : spent;
    if (over || (p->done > 0 && left < 1e18)) span_text((TimeNs)left, span, sizeof span);
    (void)snprintf(out, size, "%3d%%  %" PRId64 "/%" PRId64 "  %s %s", (int)(part * 100), p->done,
                   p->total, over ? "took" : "eta", span);
}

static void draw(Progress *p, TimeNs now) {
    char state[128];
    state_text(p, now, state, sizeof state);
    size_t columns = term_columns(p->out), taken = strlen(p->what) + strlen(state) + 6;
    size_t bar = columns > taken + BAR_MIN ? columns - taken : 0;
    if (bar > BAR_MAX) bar = BAR_MAX;
    (void)fprintf(p->out, "\r\033[K%s ", p->what);
    if (bar > 0) {
        (void)fprintf(p->out, "[%s", p->colour ? "\033[32m" : "");
        for (size_t i = 0; i < bar; i++)
            (void)fputc((double)i < share(p) * (double)bar ? '#' : '.', p->out);
        (void)fprintf(p->out, "%s] ", p->colour ? "\033[0m" : "");
    }
    (void)fputs(state, p->out);
    (void)fflush(p->out);
    p->drawn = now;
}

static void print_line(Progress *p, TimeNs now) {
    char state[128];
    state_text(p, now, state, sizeof state);
    (void)fprintf(p->out, "%s %s\n", p->what, state);
    (void)fflush(p->out);
}

void progress_begin(Progress *p, FILE *out, Clock clock, const char *what, int64_t total) {
    const char *kind = getenv("TERM");
    TimeNs      now = clock_now(clock);
    *p = (Progress){.out = out, .what = what, .clock = clock, .total = total, .start = now};
    p->live = term_is_tty(out) && kind != NULL && strcmp(kind, "dumb") != 0;
    p->colour = term_has_colour(out);
    p->drawn = now - REDRAW_NS;
    if (p->live) draw(p, now);
}

void progress_step(Progress *p, int64_t n) {
    p->done += n;
    int32_t tenth = (int32_t)(share(p) * 10);
    if (!p->live && tenth <= p->tenth) return;
    TimeNs now = clock_now(p->clock);
    if (p->live && (now - p->drawn >= REDRAW_NS || p->done == p->total)) draw(p, now);
    if (!p->live) print_line(p, now);
    p->tenth = tenth;
}

void progress_end(Progress *p) {
    TimeNs now = clock_now(p->clock);
    if (p->live) {
        draw(p, now);
        (void)fputc('\n', p->out);
        (void)fflush(p->out);
    } else if (p->tenth < 10) {
        print_line(p, now);
    }
}

static void sink_step(void *self, int64_t done, int64_t of) {
    Progress *p = self;
    p->total = of;
    progress_step(p, done - p->done);
}

ProgressSink progress_sink(Progress *p) { return (ProgressSink){sink_step, p}; }
