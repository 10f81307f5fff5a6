/* Slots: who gets one, and when. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "deliver/link/slots.h"

static struct slot slots[6];
static size_t order[16], opened, wanted;

static void on_open(void *arg) { order[opened++] = (size_t)((struct slot *)arg - slots); }
static void on_wanted(void *arg) { wanted++; }

static void begin(unsigned limit)
{
        opened = wanted = 0;
        slots_limit(limit, false);
        for (size_t i = 0; i < ARRAY_SIZE(slots); i++)
                slots[i] = (struct slot){ .open = on_open, .arg = &slots[i] };
}

static void end(void)
{
        for (size_t i = ARRAY_SIZE(slots); i-- > 0;)
                slot_leave(&slots[i]);
        assert_int_equal(slots_waiting(), 0);
}

static void test_in_turn(void **state)
{
        begin(2);
        for (size_t i = 0; i < 5; i++)
                slot_wait(&slots[i]);
        assert_int_equal(opened, 2);
        assert_int_equal(slots_waiting(), 3);
        slot_leave(&slots[1]);
        slot_leave(&slots[0]);
        assert_int_equal(opened, 4);
        assert_int_equal(order[2], 2);
        assert_int_equal(order[3], 3);
        slot_leave(&slots[1]); /* one that is gone already */
        assert_int_equal(opened, 4);
        end();
}

static void test_urgent_is_next(void **state)
{
        begin(1);
        slots[3].urgent = true;
        for (size_t i = 0; i < 4; i++)
                slot_wait(&slots[i]);
        slot_leave(&slots[0]);
        assert_int_equal(order[1], 3);
        slot_leave(&slots[3]);
        assert_int_equal(order[2], 1);
        end();
}

static void test_one_that_waits_may_go(void **state)
{
        begin(1);
        for (size_t i = 0; i < 4; i++)
                slot_wait(&slots[i]);
        slot_leave(&slots[1]);
        slot_leave(&slots[3]);
        assert_int_equal(slots_waiting(), 1);
        slot_leave(&slots[0]);
        assert_int_equal(opened, 2);
        assert_int_equal(order[1], 2);
        end();
}

static void test_owners_are_told(void **state)
{
        struct slot_owner owner = { .wanted = on_wanted };
        begin(1);
        slots_owner_add(&owner);
        slot_wait(&slots[0]);
        assert_int_equal(wanted, 0);
        slot_wait(&slots[1]);
        slot_wait(&slots[2]);
        assert_int_equal(wanted, 2);
        slots_owner_remove(&owner);
        slot_wait(&slots[3]);
        assert_int_equal(wanted, 2);
        end();
}

/* This computer bears some, and half as many through a jump host. */
static void test_default(void **state)
{
        begin(0);
        for (size_t i = 0; i < ARRAY_SIZE(slots); i++)
                slot_wait(&slots[i]);
        assert_int_equal(opened, ARRAY_SIZE(slots)); /* at least 8 */
        end();
        slots_limit(0, true);
        opened = 0;
        for (size_t i = 0; i < ARRAY_SIZE(slots); i++)
                slot_wait(&slots[i]);
        assert_true(opened >= 4);
        end();
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_in_turn),
                cmocka_unit_test(test_urgent_is_next), cmocka_unit_test(test_one_that_waits_may_go),
                cmocka_unit_test(test_owners_are_told), cmocka_unit_test(test_default) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
