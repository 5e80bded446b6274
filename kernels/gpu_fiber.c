#include "kernels/gpu_fiber.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define THREADS 1024           /* of a block, at most */
#define WAVES (THREADS / 32)
#define STACK 65536            /* of a fiber, guard page included */
#define PAGE 4096
#define SHARED (256 * 1024)    /* the most dynamic shared memory, of any GPU */
#define OPEN 64                /* asynchronous copies of a thread in flight */
#define CANARY 0xc5

struct copy { void *to; const void *from; unsigned group; };

enum state { READY, MEETS, EXITED };

struct fiber {
	void *sp;
	enum state state;
	enum gpu_meet kind;
	int line;              /* of the meeting */
	uint32_t turn;         /* meetings of the wave so far */
	unsigned copies, group;
	struct copy copy[OPEN];
};

struct gpu_fiber_now gpu_fiber_now;

static struct {
	char *stacks;          /* THREADS of them */
	uint8_t *shared;       /* SHARED bytes and a guard page on each side */
	struct fiber *fibers;
	uint32_t slots[WAVES * 64][2][GPU_FIBER_SLOT]; /* by turns */
	const struct gpu_fiber_launch *launch;
	const struct gpu_args *args;
	void *scheduler;       /* its stack pointer while a fiber runs */
	struct fiber *running; /* NULL: the scheduler */
	unsigned count;        /* threads of a block */
	unsigned block, round; /* which lanes go first changes with them */
	char fault[320];       /* "" while all is well */
} play;

/* The variables that kernels declare __shared__, of all objects of this program. */
extern char shared_begin[] __asm__("__start_gpu_shared") __attribute__((weak));
extern char shared_end[] __asm__("__stop_gpu_shared") __attribute__((weak));

/* fiber_switch(save, load): leaves one stack for the other.  swapcontext would do, at a
 * system call each time. */
#if defined(__x86_64__)
__asm__(".text\n.p2align 4\n.local fiber_switch\n.type fiber_switch, @function\n"
	"fiber_switch:\n"
	"\tpush %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n"
	"\tmov %rsp, (%rdi)\n\tmov %rsi, %rsp\n"
	"\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n"
	"\tret\n.size fiber_switch, . - fiber_switch\n");
#define SAVED 6                /* words below the return address */
#define RETURN SAVED
#elif defined(__aarch64__)
__asm__(".text\n.p2align 4\n.local fiber_switch\n.type fiber_switch, %function\n"
	"fiber_switch:\n"
	"\tsub sp, sp, #160\n"
	"\tstp x19, x20, [sp, #0]\n\tstp x21, x22, [sp, #16]\n\tstp x23, x24, [sp, #32]\n"
	"\tstp x25, x26, [sp, #48]\n\tstp x27, x28, [sp, #64]\n\tstp x29, x30, [sp, #80]\n"
	"\tstp d8, d9, [sp, #96]\n\tstp d10, d11, [sp, #112]\n"
	"\tstp d12, d13, [sp, #128]\n\tstp d14, d15, [sp, #144]\n"
	"\tmov x9, sp\n\tstr x9, [x0]\n\tmov sp, x1\n"
	"\tldp x19, x20, [sp, #0]\n\tldp x21, x22, [sp, #16]\n\tldp x23, x24, [sp, #32]\n"
	"\tldp x25, x26, [sp, #48]\n\tldp x27, x28, [sp, #64]\n\tldp x29, x30, [sp, #80]\n"
	"\tldp d8, d9, [sp, #96]\n\tldp d10, d11, [sp, #112]\n"
	"\tldp d12, d13, [sp, #128]\n\tldp d14, d15, [sp, #144]\n"
	"\tadd sp, sp, #160\n\tret\n.size fiber_switch, . - fiber_switch\n");
#define SAVED 20
#define RETURN 11              /* x30 */
#else
#error "gpu_fiber: no stack switch for this processor"
#endif
void fiber_switch(void **save, void *load) __asm__("fiber_switch");

static const char *const meet_names[] = {
	[GPU_MEET_BLOCK] = "gpu_sync", [GPU_MEET_WAVE] = "gpu_sync_warp",
	[GPU_MEET_SHUFFLE] = "a shuffle", [GPU_MEET_MATRIX] = "a matrix product",
};

static void
fault_set(const char *what)
{
	const struct gpu_dim *b = &gpu_fiber_now.block;

	if (play.fault[0])
		return;
	(void)snprintf(play.fault, sizeof play.fault, "%s: block %u,%u,%u: %s",
		play.launch->name, b->x, b->y, b->z, what);
}

/* Back to the scheduler; a fiber that failed never comes back. */
static void
fiber_leave(void)
{
	struct fiber *f = play.running;

	play.running = NULL;
	fiber_switch(&f->sp, play.scheduler);
}

_Noreturn void
gpu_fiber_fault(int line, const char *what)
{
	char text[200];

	(void)snprintf(text, sizeof text, "thread %u at line %d: %s",
		(unsigned)(play.running - play.fibers), line, what);
	fault_set(text);
	for (;;)
		fiber_leave();
}

/* ---- what kernels call ---------------------------------------------------------- */

void
gpu_fiber_meet(enum gpu_meet kind, int line)
{
	struct fiber *f = play.running;

	f->kind = kind;
	f->line = line;
	f->state = MEETS;
	fiber_leave();
	f->turn += kind != GPU_MEET_BLOCK;
}

static unsigned
wave_first(void)
{
	unsigned me = (unsigned)(play.running - play.fibers);

	return me - me % play.launch->wave;
}

uint32_t *
gpu_fiber_mine(void)
{
	struct fiber *f = play.running;

	return play.slots[f - play.fibers][f->turn & 1];
}

const uint32_t *
gpu_fiber_seen(uint32_t lane, int line)
{
	unsigned at = wave_first() + lane;

	if (lane >= play.launch->wave || at >= play.count)
		gpu_fiber_fault(line, "reads from a lane that does not exist");
	return play.slots[at][(play.running->turn - 1) & 1];
}

void
gpu_fiber_copy(void *to, const void *from, int line)
{
	struct fiber *f = play.running;

	if (((uintptr_t)to | (uintptr_t)from) & 15)
		gpu_fiber_fault(line, "a 16-byte copy that is not aligned");
	if (f->copies == OPEN)
		gpu_fiber_fault(line, "too many copies are open");
	f->copy[f->copies++] = (struct copy){ to, from, f->group };
}

void
gpu_fiber_commit(void)
{
	play.running->group++;
}

void
gpu_fiber_wait(unsigned open)
{
	struct fiber *f = play.running;
	unsigned i, kept = 0;

	for (i = 0; i < f->copies; i++)
		if (f->copy[i].group + open < f->group)
			memcpy(f->copy[i].to, f->copy[i].from, 16);
		else
			f->copy[kept++] = f->copy[i];
	f->copies = kept;
}

/* ---- one block ------------------------------------------------------------------ */

static void
fiber_main(void)
{
	play.launch->entry(*play.args);
	play.running->state = EXITED;
	for (;;)
		fiber_leave();
}

static void
fiber_reset(unsigned i)
{
	void **top = (void **)(void *)(play.stacks + (size_t)(i + 1) * STACK);
	struct fiber *f = &play.fibers[i];

	/* As if fiber_main had been called: the stack is 8 off 16 at its first instruction. */
	top -= SAVED + 2;
	memset(top, 0, (SAVED + 2) * sizeof *top);
	*(void (**)(void))(void *)&top[RETURN] = fiber_main;
	f->sp = top;
	f->state = READY;
	f->turn = f->copies = f->group = 0;
}

static void
fiber_resume(unsigned i)
{
	const struct gpu_fiber_launch *l = play.launch;

	play.running = &play.fibers[i];
	gpu_fiber_now.thread.x = i;
	gpu_fiber_now.lane = i % l->wave;
	fiber_switch(&play.scheduler, play.fibers[i].sp);
}

static void
fiber_place(unsigned i, char *out, size_t size)
{
	const struct fiber *f = &play.fibers[i];

	if (f->state == EXITED)
		(void)snprintf(out, size, "thread %u has ended", i);
	else
		(void)snprintf(out, size, "thread %u is at %s in line %d", i,
			meet_names[f->kind], f->line);
}

/* Whether threads [first, end) are all at one place; a fault when not. */
static bool
threads_agree(unsigned first, unsigned end)
{
	const struct fiber *a = &play.fibers[first], *b;
	char one[80], other[80], text[200];
	unsigned i;

	for (i = first + 1; i < end; i++) {
		b = &play.fibers[i];
		if (a->state == b->state && (a->state == EXITED ||
			(a->kind == b->kind && a->line == b->line)))
			continue;
		fiber_place(first, one, sizeof one);
		fiber_place(i, other, sizeof other);
		(void)snprintf(text, sizeof text, "divergence: %s, %s", one, other);
		fault_set(text);
		return false;
	}
	return true;
}

static void
threads_release(unsigned first, unsigned end)
{
	unsigned i;

	for (i = first; i < end; i++)
		play.fibers[i].state = READY;
}

/* Until the wave waits for its block or has ended. */
static void
wave_run(unsigned first)
{
	unsigned end = first + play.launch->wave, i, n;
	const struct fiber *f = &play.fibers[first];

	if (end > play.count)
		end = play.count;
	n = end - first;
	for (;;) {
		for (i = 0; i < n && !play.fault[0]; i++)
			fiber_resume((play.block + play.round) & 1 ? end - 1 - i : first + i);
		play.round++;
		if (play.fault[0] || !threads_agree(first, end))
			return;
		if (f->state == EXITED || f->kind == GPU_MEET_BLOCK)
			return;
		threads_release(first, end);
	}
}

static void
shared_poison(void)
{
	uint8_t *end = play.shared + PAGE + SHARED;

	gpu_fiber_now.shared = end - (play.launch->shared + 15) / 16 * 16;
	memset(gpu_fiber_now.shared, 0xff, (size_t)(end - gpu_fiber_now.shared));
	memset(gpu_fiber_now.shared - 64, CANARY, 64);
	if (shared_begin)
		memset(shared_begin, 0xff,
			(size_t)((uintptr_t)shared_end - (uintptr_t)shared_begin));
}

static void
shared_check(void)
{
	unsigned i;

	for (i = 1; i <= 64; i++)
		if (gpu_fiber_now.shared[-(int)i] != CANARY)
			fault_set("wrote in front of its shared memory");
}

static void
block_run(void)
{
	unsigned waves = (play.count + play.launch->wave - 1) / play.launch->wave, i;

	for (i = 0; i < play.count; i++)
		fiber_reset(i);
	shared_poison();
	do {
		threads_release(0, play.count);
		for (i = 0; i < waves && !play.fault[0]; i++)
			wave_run((play.block & 1 ? waves - 1 - i : i) * play.launch->wave);
		if (play.fault[0] || !threads_agree(0, play.count))
			return;
	} while (play.fibers[0].state != EXITED);
	shared_check();
}

/* ---- a launch ------------------------------------------------------------------- */

static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE };
#define SIGNALS (sizeof signals / sizeof signals[0])

static void
on_signal(int sig, siginfo_t *info, void *context)
{
	char text[200];

	(void)context;
	if (!play.running) {
		/* Not a kernel's: let it strike again. */
		(void)signal(sig, SIG_DFL);
		return;
	}
	if (sig == SIGSEGV || sig == SIGBUS)
		(void)snprintf(text, sizeof text, "thread %u: illegal address 0x%" PRIxPTR,
			(unsigned)(play.running - play.fibers), (uintptr_t)info->si_addr);
	else
		(void)snprintf(text, sizeof text, "thread %u: %s",
			(unsigned)(play.running - play.fibers), sig == SIGFPE ?
			"integer division by zero" :
			"misaligned address or other undefined behaviour");
	fault_set(text);
	for (;;)
		fiber_leave();
}

static void
grid_run(void)
{
	const uint32_t *g = play.launch->grid;
	struct gpu_dim *b = &gpu_fiber_now.block;

	for (b->z = 0; b->z < g[2]; b->z++)
		for (b->y = 0; b->y < g[1]; b->y++)
			for (b->x = 0; b->x < g[0]; b->x++) {
				block_run();
				if (play.fault[0])
					return;
				play.block++;
			}
}

/* Kernels run with their own handlers, on a stack that a fiber can not have used up. */
static void
grid_run_guarded(void)
{
	static char stack[65536];
	struct sigaction mine = { .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
	struct sigaction saved[SIGNALS];
	stack_t alt = { .ss_sp = stack, .ss_size = sizeof stack }, old;
	size_t i;

	mine.sa_sigaction = on_signal;
	(void)sigemptyset(&mine.sa_mask);
	(void)sigaltstack(&alt, &old);
	for (i = 0; i < SIGNALS; i++)
		(void)sigaction(signals[i], &mine, &saved[i]);
	grid_run();
	for (i = 0; i < SIGNALS; i++)
		(void)sigaction(signals[i], &saved[i], NULL);
	(void)sigaltstack(&old, NULL);
}

static void *
pages_new(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Once per process, and kept: stacks with a guard page below each, shared memory. */
static int
play_prepare(struct err *e)
{
	size_t i;

	if (play.fibers)
		return 0;
	if (!play.stacks)
		play.stacks = pages_new((size_t)THREADS * STACK);
	if (!play.shared)
		play.shared = pages_new(SHARED + 2 * PAGE);
	if (!play.stacks || !play.shared)
		return err_set(e, ERR_NOMEM, "no memory for the stacks of a block");
	for (i = 0; i < THREADS; i++)
		if (mprotect(play.stacks + i * STACK, PAGE, PROT_NONE))
			return err_set(e, ERR_NOMEM, "no guard page below a stack");
	if (mprotect(play.shared + PAGE + SHARED, PAGE, PROT_NONE))
		return err_set(e, ERR_NOMEM, "no guard page behind shared memory");
	play.fibers = calloc(THREADS, sizeof *play.fibers);
	return play.fibers ? 0 : err_set(e, ERR_NOMEM, "no memory for fibers");
}

int
gpu_fiber_run(const struct gpu_fiber_launch *l, const struct gpu_args *a, struct err *e)
{
	if ((l->wave != 32 && l->wave != 64) || !l->block || l->block > THREADS ||
		!l->grid[0] || !l->grid[1] || !l->grid[2] || l->shared > SHARED)
		return err_set(e, ERR_DEVICE, "launch of %s: wrong grid, block or shared memory",
			l->name);
	if (play_prepare(e))
		return -1;
	play.launch = l;
	play.args = a;
	play.count = l->block;
	play.running = NULL;
	play.round = 0;
	play.fault[0] = '\0';
	gpu_fiber_now = (struct gpu_fiber_now){
		.block_dim = { l->block, 1, 1 },
		.grid_dim = { l->grid[0], l->grid[1], l->grid[2] },
	};
	grid_run_guarded();
	play.block++; /* a launch of one block goes the other way next time */
	return play.fault[0] ? err_set(e, ERR_DEVICE, "launch: %s", play.fault) : 0;
}
