#include "cluster/date.h"

// The number that n digits at *p say, followed by `next`; -1 when they do not.
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
