#include "policy/chip/oracle/oracle_int.h"

#include <string.h>

enum { PASSES = 8 };

void oracle_admit_carve(OracleAdmit *a, const ChipRequest *requests, uint32_t n, Carve *from) {
    *a = (OracleAdmit){.requests = requests, .n = n};
    a->work = carve(from, float, n);
    a->left = carve(from, float, n);
    a->pending = carve(from, uint32_t, n);
    a->rejected = carve(from, uint8_t, n);
}

static void remove_at(OracleAdmit *a, uint32_t at, uint32_t *n) {
    memmove(a->pending + at, a->pending + at + 1, (--*n - at) * sizeof *a->pending);
}

static void insert(OracleAdmit *a, uint32_t request, uint32_t *n) {
    uint32_t at = (*n)++;
    for (; at > 0 && a->requests[a->pending[at - 1]].deadline > a->requests[request].deadline; at--)
        a->pending[at] = a->pending[at - 1];
    a->pending[at] = request;
    a->left[request] = a->work[request];
}

static void serve(OracleAdmit *a, double amount, uint32_t *n) {
    uint32_t done = 0;
    for (; done < *n; done++) {
        float *left = &a->left[a->pending[done]];
        if ((double)*left > amount) {
            *left -= (float)amount;
            break;
        }
        amount -= (double)*left;
    }
    *n -= done;
    memmove(a->pending, a->pending + done, *n * sizeof *a->pending);
}

// The request with the most work left among the first end + 1.
static uint32_t largest(const OracleAdmit *a, uint32_t end) {
    uint32_t most = 0;
    for (uint32_t i = 1; i <= end; i++)
        if (a->left[a->pending[i]] > a->left[a->pending[most]]) most = i;
    return most;
}

// True if a rejected request had been started.
static bool reject_late(OracleAdmit *a, TimeNs now, double speed, uint32_t *n) {
    double sum = 0;
    bool   wasted = false;
    for (uint32_t i = 0; i < *n;) {
        sum += (double)a->left[a->pending[i]];
        if (sum <= speed * (double)(a->requests[a->pending[i]].deadline - now)) {
            i++;
            continue;
        }
        uint32_t at = largest(a, i), request = a->pending[at];
        sum -= (double)a->left[request];
        wasted = wasted || a->left[request] < a->work[request];
        a->rejected[request] = 1;
        remove_at(a, at, n);
    }
    return wasted;
}

static bool pass(OracleAdmit *a, double speed) {
    TimeNs   now = 0;
    uint32_t n = 0;
    bool     wasted = false;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->rejected[i]) continue;
        serve(a, speed * (double)(a->requests[i].arrival - now), &n);
        now = a->requests[i].arrival;
        insert(a, i, &n);
        wasted = reject_late(a, now, speed, &n) || wasted;
    }
    return wasted;
}

void oracle_admit(OracleAdmit *a, double speed) {
    memset(a->rejected, 0, a->n);
    for (uint32_t i = 0; i < PASSES; i++)
        if (!pass(a, speed)) break;
}
