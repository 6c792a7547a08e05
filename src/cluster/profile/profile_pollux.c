// Pollux' tables: scaling and spread of its applications.
#include <math.h>

#include "cluster/pollux_tables.h"
#include "cluster/profile/profiles_int.h"

static const uint32_t gangs[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
enum { GANGS = sizeof gangs / sizeof *gangs };
_Static_assert((int)GANGS <= (int)PROFILE_ROWS, "rows of a grid");

// Gangs that fit on a measured server, on more servers; what is not measured is as with one fewer,
// and so is what rises.
static ProfileGrid spread_of(const PolluxApp *x) {
    ProfileGrid g = {.rows = POLLUX_SERVER_GPUS, .columns = POLLUX_SERVER_GPUS};
    for (uint32_t r = 0; r < g.rows; r++) {
        const double *at = x->goodput[r + 1];
        g.row[r] = r + 1;
        for (uint32_t c = 0; c < g.columns; c++) {
            double ratio = at[1] > 0 && at[c + 1] > 0 ? at[c + 1] / at[1] : 1;
            g.column[c] = c + 1;
            g.at[r][c] = c > 0 ? fmin(g.at[r][c - 1], ratio) : 1;
        }
    }
    return g;
}

// Goodput on one server relative to one GPU; a wider gang's is divided by what its spread costs.
static ProfileGrid scaling_of(const PolluxApp *x, const ProfileGrid *spread) {
    ProfileGrid g = {.columns = 1, .column = {1}};
    double      one = x->goodput[1][1];
    for (uint32_t i = 0; i < GANGS; i++) {
        uint32_t servers = 1;
        double   speed = pollux_app_goodput(x, gangs[i], &servers);
        if (!(speed > 0)) continue;
        speed /= one * (servers > 1 ? profile_grid(spread, gangs[i], servers) : 1);
        g.row[g.rows] = gangs[i];
        g.at[g.rows][0] = g.rows > 0 ? fmax(speed, g.at[g.rows - 1][0]) : speed;
        g.rows++;
    }
    return g;
}

Err profile_read_pollux(ProfileReader *r, const char *folder) {
    PolluxTables tables;
    TRY(pollux_tables_read(folder, r->arena, &tables));
    for (uint32_t i = 0; i < tables.n; i++) {
        uint32_t c = 0;
        Err      e = profile_class(r, tables.at[i].name, &c);
        if (e != ERR_OK) return err_add(e, "%s", folder);
        if (c == PROFILE_NONE) continue;
        r->p->at[c].spread = spread_of(&tables.at[i]);
        r->p->at[c].scaling = scaling_of(&tables.at[i], &r->p->at[c].spread);
    }
    return ERR_OK;
}
