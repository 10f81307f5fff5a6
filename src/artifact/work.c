#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "artifact/work.h"

struct queue {
        struct work *first, **end;
};

struct worker {
        pthread_t thread;
        pthread_mutex_t mutex;
        pthread_cond_t more;
        struct queue todo, ready;
        atomic_bool stop;
        int wake;
        struct event *event;
};

static void queue_init(struct queue *q)
{
        q->first = NULL;
        q->end = &q->first;
}

static void queue_put(struct queue *q, struct work *w)
{
        w->next = NULL;
        *q->end = w;
        q->end = &w->next;
}

static struct work *queue_get(struct queue *q)
{
        struct work *w = q->first;
        if (w && !(q->first = w->next))
                queue_init(q);
        return w;
}

static void *worker_main(void *arg)
{
        struct worker *k = arg;
        pthread_mutex_lock(&k->mutex);
        while (!atomic_load(&k->stop)) {
                struct work *w = queue_get(&k->todo);
                if (!w) {
                        pthread_cond_wait(&k->more, &k->mutex);
                        continue;
                }
                pthread_mutex_unlock(&k->mutex);
                w->run(w, &k->stop, &w->err);
                pthread_mutex_lock(&k->mutex);
                queue_put(&k->ready, w);
                (void)!eventfd_write(k->wake, 1);
        }
        pthread_mutex_unlock(&k->mutex);
        return NULL;
}

/* One at a time: done may end everything, and the worker with it. */
static void on_work_ready(int fd, short what, void *arg)
{
        struct worker *k = arg;
        eventfd_t n;
        pthread_mutex_lock(&k->mutex);
        struct work *w = queue_get(&k->ready);
        if (!k->ready.first)
                (void)!eventfd_read(fd, &n);
        pthread_mutex_unlock(&k->mutex);
        if (!w)
                return;
        struct error err CLEANUP(error_release) = w->err;
        w->err = (struct error){ 0 };
        w->done(w, err.code ? &err : NULL);
}

int worker_new(struct event_base *base, struct worker **out, struct error *err)
{
        struct worker *k = xcalloc(1, sizeof(*k));
        queue_init(&k->todo);
        queue_init(&k->ready);
        pthread_mutex_init(&k->mutex, NULL);
        pthread_cond_init(&k->more, NULL);
        k->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        sigset_t all, before; /* signals are the loop's */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        int code = k->wake < 0 ? errno : pthread_create(&k->thread, NULL, worker_main, k);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (code) {
                close_p(&k->wake);
                free(k);
                return error_set(
                        err, code, EXIT_INTERNAL, "cannot start a thread: %s", strerror(code));
        }
        k->event = event_new(base, k->wake, EV_READ | EV_PERSIST, on_work_ready, k);
        event_add(k->event, NULL);
        *out = k;
        return 0;
}

void worker_submit(struct worker *k, struct work *w)
{
        pthread_mutex_lock(&k->mutex);
        queue_put(&k->todo, w);
        pthread_cond_signal(&k->more);
        pthread_mutex_unlock(&k->mutex);
}

static void drop(struct queue *q)
{
        for (struct work *w; (w = queue_get(q));)
                error_release(&w->err);
}

void worker_free(struct worker *k)
{
        if (!k)
                return;
        pthread_mutex_lock(&k->mutex);
        atomic_store(&k->stop, true);
        pthread_cond_signal(&k->more);
        pthread_mutex_unlock(&k->mutex);
        pthread_join(k->thread, NULL);
        event_free(k->event);
        close(k->wake);
        drop(&k->todo);
        drop(&k->ready);
        pthread_cond_destroy(&k->more);
        pthread_mutex_destroy(&k->mutex);
        free(k);
}
