#include <string.h>

#include "base/decimal.h"
#include "cluster/trace/trace_window.h"

static Err time_of_date(const char *text, const JobList *l, TimeNs *out) {
    int64_t seconds = 0;
    if (!date_read(text, &seconds))
        return err_set(ERR_ARG, "'%.40s' is no date; write 2017-10-02 or '2017-10-02 08:30:00'",
                       text);
    if (l->origin == 0)
        return err_set(ERR_ARG, "'%.40s': %s has no dates; give a time since its beginning, as 12h",
                       text, l->name);
    *out = seconds * JOB_SECOND - l->origin;
    return ERR_OK;
}

Err trace_window_time(const char *text, const JobList *l, TimeNs *out) {
    static const char    letters[] = "smhd";
    static const int64_t seconds[] = {1, 60, 3600, 86400};
    size_t               n = strlen(text);
    char                 number[32];
    if (n > 4 && text[4] == '-') return time_of_date(text, l, out);
    const char *letter = n > 0 ? strchr(letters, text[n - 1]) : NULL;
    size_t      digits = n - (letter != NULL);
    int64_t     unit = (letter != NULL ? seconds[letter - letters] : 1) * JOB_SECOND;
    if (digits == 0 || digits >= sizeof number)
        return err_set(ERR_ARG, "'%.40s' is no time; write 90, 15m, 12h or 3d", text);
    memcpy(number, text, digits);
    number[digits] = '\0';
    DecimalError f = decimal_read(number, unit, JOB_TIME_MAX, out);
    if (f != DECIMAL_OK)
        return err_set(ERR_ARG, "'%.40s' %s; write a time as 90, 15m, 12h or 3d", text,
                       decimal_error_text(f));
    return ERR_OK;
}

// Bounds above the range of nanoseconds exclude nothing.
static TimeNs bound(int64_t seconds) {
    return seconds > JOB_TIME_MAX / JOB_SECOND ? INT64_MAX : seconds * JOB_SECOND;
}

static bool fits(const TraceWindow *w, const Job *j) {
    if ((w->known || w->min_s > 0 || w->max_s > 0) && j->work < 0) return false;
    if (w->min_s > 0 && j->work < bound(w->min_s)) return false;
    if (w->max_s > 0 && j->work > bound(w->max_s)) return false;
    if (w->min_gpus > 0 && j->gpus < w->min_gpus) return false;
    return w->max_gpus <= 0 || j->gpus <= w->max_gpus;
}

static void rebase(JobList *l) {
    TimeNs first = l->n > 0 ? l->at[0].submit : 0;
    for (uint32_t i = 0; i < l->n; i++) l->at[i].submit -= first;
    if (l->origin != 0) l->origin += first;
}

Err trace_window_cut(const TraceWindow *w, JobList *l) {
    TimeNs   from = INT64_MIN, to = INT64_MAX;
    int64_t  passed = 0;
    uint32_t n = 0;
    if (w->from != NULL) TRY(trace_window_time(w->from, l, &from));
    if (w->to != NULL) TRY(trace_window_time(w->to, l, &to));
    for (uint32_t i = 0; i < l->n && (w->jobs <= 0 || n < w->jobs); i++) {
        const Job *j = &l->at[i];
        if (j->submit < from || j->submit >= to || !fits(w, j)) continue;
        if (passed++ >= w->skip) l->at[n++] = *j;
    }
    l->n = n;
    if (w->rebase) rebase(l);
    return ERR_OK;
}

// Value of n digits at *p followed by `next`; -1: no match.
static int32_t part(const char **p, int n, char next) {
    int32_t v = 0;
    for (int i = 0; i < n; i++, (*p)++) {
        if (**p < '0' || **p > '9') return -1;
        v = v * 10 + (**p - '0');
    }
    if (**p != next) return -1;
    *p += next != '\0';
    return v;
}

static bool leap(int32_t y) { return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0; }

static int32_t month_days(int32_t y, int32_t m) {
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[m - 1] + (m == 2 && leap(y));
}

static int64_t days_since_1970(int32_t y, int32_t m, int32_t d) {
    int64_t before = y - 1;
    int64_t days = before * 365 + before / 4 - before / 100 + before / 400 - 719162;
    for (int32_t i = 1; i < m; i++) days += month_days(y, i);
    return days + d - 1;
}

bool date_read(const char *text, int64_t *out) {
    const char *p = text;
    int32_t y = part(&p, 4, '-'), m = y < 0 ? -1 : part(&p, 2, '-'), d = -1, h = 0, min = 0, s = 0;
    if (m < 1 || m > 12 || y < 1970 || y > 2095) return false;
    bool alone = p[0] != '\0' && p[1] != '\0' && p[2] == '\0';
    if (alone) {
        d = part(&p, 2, '\0');
    } else {
        d = part(&p, 2, p[0] != '\0' && p[1] != '\0' && p[2] == 'T' ? 'T' : ' ');
        h = d < 0 ? -1 : part(&p, 2, ':');
        min = h < 0 ? -1 : part(&p, 2, ':');
        s = min < 0 ? -1 : part(&p, 2, '\0');
    }
    if (d < 1 || d > month_days(y, m) || h < 0 || h > 23 || min < 0 || min > 59 || s < 0 || s > 60)
        return false;
    *out = days_since_1970(y, m, d) * 86400 + h * 3600 + min * 60 + s;
    return true;
}

// "Z", "+01:00", "+0100" or nothing, as seconds east of UTC.
static bool zone_read(const char *p, int64_t *out) {
    int64_t sign = *p == '-' ? -1 : 1;
    *out = 0;
    if (*p == '\0' || strcmp(p, "Z") == 0) return true;
    if (*p++ != '+' && sign > 0) return false;
    bool    colon = strlen(p) == 5 && p[2] == ':';
    int32_t h = -1, m = -1;
    if (colon) {
        h = part(&p, 2, ':');
        m = h < 0 ? -1 : part(&p, 2, '\0');
    } else if (strlen(p) == 4) {
        int32_t both = part(&p, 4, '\0');
        h = both < 0 ? -1 : both / 100;
        m = both < 0 ? -1 : both % 100;
    }
    *out = sign * (h * 3600 + m * 60);
    return h >= 0 && h <= 23 && m >= 0 && m <= 59;
}

enum { DATE_LETTERS = 19 };

bool instant_read(const char *text, TimeNs *out) {
    char    date[DATE_LETTERS + 1], fraction[16] = "0.";
    int64_t seconds = 0, zone = 0, ns = 0;
    if (strnlen(text, DATE_LETTERS) < DATE_LETTERS) return false;
    memcpy(date, text, DATE_LETTERS);
    date[DATE_LETTERS] = '\0';
    const char *rest = text + DATE_LETTERS;
    size_t      digits = *rest == '.' ? strspn(rest + 1, "0123456789") : 0;
    if (*rest == '.' && (digits < 1 || digits > 9)) return false;
    if (digits > 0) {
        memcpy(fraction + 2, rest + 1, digits);
        rest += 1 + digits;
    }
    if (!date_read(date, &seconds) || !zone_read(rest, &zone)) return false;
    if (digits > 0 && decimal_read(fraction, JOB_SECOND, JOB_SECOND, &ns) != DECIMAL_OK)
        return false;
    if (seconds < zone) return false;
    *out = (seconds - zone) * JOB_SECOND + ns;
    return true;
}
