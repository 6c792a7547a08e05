// Which connection or response is closed when connections or memory run out.
#include "base/err.h"
#include "net/listener_int.h"

// EVICT_SHARE: an address with more than this part of all connections loses its own first.
// EVICT_HALF: the same of idle connections that have made many requests, as a class.
// EVICT_TURN: responses closed at once.
enum { EVICT_SHARE = 8, EVICT_HALF = 2, EVICT_TURN = 16 };

static const TimeNs EVICT_SECOND = 1000000000, EVICT_FUTILE = 20000000, EVICT_STALL = 20000000;

typedef struct EvictRow {
    StreamUse use;
    TimeNs    age;  // since it came into use, or last moved as much as it should in a second
} EvictRow;

// In this order. A connection that is being used properly is in none of these states for long.
static const EvictRow evict_rows[] = {
    {STREAM_NEW, 1}, {STREAM_PART, 5}, {STREAM_IDLE, 1}, {STREAM_PART, 1}, {STREAM_STALL, 1}};

static Stream *oldest(const StreamList *uses, StreamUse use, TimeNs until) {
    int n = use >= STREAM_PART ? STREAM_CLASSES : 1;
    for (int i = 0; i < n; i++) {
        Stream *s = uses[(int)use + i].first;
        if (s && s->since <= until) return s;
    }
    return NULL;
}

// A connection that has made requests has a second for its next one, unless those that have made no
// more requests than it hold more than a share of all places, and at least so many: many that make
// a few requests and then keep their place. The one that waits for longest goes first, so that
// clients that go on making requests stay. Classes from..., of one use.
static Stream *crowding(const StreamList *lists, int from, uint32_t room, uint32_t least,
                        TimeNs until) {
    uint32_t n = 0;
    for (int i = from; i < STREAM_CLASSES; i++) {
        const StreamList *l = &lists[i];
        uint32_t          share = i < STREAM_CLASSES - 1 ? EVICT_SHARE : EVICT_HALF;
        n += l->n;
        if (n > room / share && n >= least && l->first && l->first->since <= until) return l->first;
    }
    return NULL;
}

static Stream *known(const StreamList *uses, uint32_t room, uint32_t least, TimeNs until) {
    Stream *s = crowding(&uses[STREAM_IDLE], 0, room, least, until);
    return s ? s : crowding(&uses[STREAM_PART], 1, room, least, until);
}

// Connections come and go faster than they age: those that have made at most one request and do not
// complete the next go first, in order of arrival, then those that do not read; but those that are
// most of all go before. One that came in this round stays.
static Stream *oldest_young(const StreamList *uses, uint32_t room, TimeNs now) {
    const StreamList *news = &uses[STREAM_NEW], *parts = &uses[STREAM_PART];
    Stream           *s = known(uses, room, news->n + parts->n + uses[STREAM_STALL].n, now - 1);
    if (s) return s;
    uint32_t n_stalled = uses[STREAM_STALL].n;
    TimeNs   stall = n_stalled > room / EVICT_HALF ? 1 : EVICT_STALL;
    Stream  *stalled = oldest(uses, STREAM_STALL, now - stall);
    if (stalled && n_stalled > news->n + parts->n) return stalled;
    Stream *new = news->first && news->first->since < now ? news->first : NULL;
    Stream *part = parts->first && parts->first->since < now ? parts->first : NULL;
    if (new &&part) return new->since <= part->since ? new : part;
    if (news->first || parts->first) return new ? new : part;
    return stalled ? stalled : known(uses, room, 0, now - 1);
}

static Stream *pick(const StreamList *uses, uint32_t room, TimeNs now) {
    for (size_t i = 0; i < sizeof evict_rows / sizeof *evict_rows; i++) {
        const EvictRow *row = &evict_rows[i];
        Stream         *s = oldest(uses, row->use, now - row->age * EVICT_SECOND);
        if (s) return s;
    }
    return oldest_young(uses, room, now);
}

Stream *listener_victim(const Listener *l, const Peer *newcomer) {
    TimeNs      now = loop_now(l->loop);
    const Peer *hog = l->heaviest;
    Stream     *s = NULL;
    if (hog && hog->open > l->room / EVICT_SHARE) s = pick(hog->uses, l->room, now);
    // An address that holds half of all connections takes none from others.
    if (s || (newcomer && newcomer->open > l->room / 2 && newcomer->open < l->counts.open))
        return s;
    return pick(l->uses, l->room, now);
}

// The late response of the address with most unread bytes, the oldest of those.
static Stream *worst(const Listener *l, const Budget *b) {
    Stream *found = NULL;
    size_t  most = 0;
    for (Stream *s = l->unread.first; s; s = s->links[STREAM_UNREAD].next) {
        size_t held = s->peer ? s->peer->unread : s->unread;
        if (held > most && s->kind->late(s, b, false) > 0) {
            found = s;
            most = held;
        }
    }
    return found;
}

size_t listener_relieve(Listener *l, const Budget *b, size_t bytes) {
    size_t  freed = 0;
    Stream *s = NULL;
    for (int i = 0; i < EVICT_TURN && freed < bytes && (s = worst(l, b)) != NULL; i++) {
        freed += s->kind->late(s, b, true);
        l->counts.evicted++;
    }
    return freed;
}

bool listener_make_room(Listener *l, size_t bytes) {
    const ListenerOptions *o = &l->options;
    if (loop_now(l->loop) < l->futile + EVICT_FUTILE) return false;
    size_t freed = o->relieve ? o->relieve(o->self, bytes) : listener_relieve(l, NULL, bytes);
    if (freed == 0) l->futile = loop_now(l->loop);
    return freed > 0;
}
