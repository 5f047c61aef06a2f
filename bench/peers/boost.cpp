// SPDX-License-Identifier: MIT
//
// boost.cpp - the operations of ../uthreads.c with Boost.Fiber; and a bare switch
// of Boost.Context, which has no scheduler: what no scheduler can be below.
//
//	boost WHAT OPS: prints {"ns": CPU time of the process per operation}

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include <boost/context/fiber.hpp>
#include <boost/fiber/all.hpp>

namespace fibers = boost::fibers;
namespace context = boost::context;

static std::uint64_t cpu_ns()
{
	timespec at;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	return std::uint64_t(at.tv_sec) * 1000000000 + std::uint64_t(at.tv_nsec);
}

static void yields(long ops, long threads)
{
	std::vector<fibers::fiber> all;

	for (long i = 0; i < threads; i++)
		all.emplace_back([=] {
			for (long n = 0; n < ops / threads; n++)
				boost::this_fiber::yield();
		});
	for (auto &one : all)
		one.join();
}

static void creations(long ops)
{
	for (long n = 0; n < ops; n++)
		fibers::fiber([] {}).join();
}

static void round_trips(long ops)
{
	fibers::buffered_channel<long> there(2), back(2);
	fibers::fiber echo([&] {
		long ball;

		while (there.pop(ball) == fibers::channel_op_status::success)
			back.push(ball);
	});

	for (long n = 0; n < ops; n++) {
		long ball = n;

		there.push(ball);
		back.pop(ball);
	}
	there.close();
	echo.join();
}

/* There and back again: two switches, of which each counts. */
static void bare_switches(long ops)
{
	context::fiber other([](context::fiber &&caller) {
		for (;;)
			caller = std::move(caller).resume();
		return std::move(caller);
	});

	for (long n = 0; n < ops; n += 2)
		other = std::move(other).resume();
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	const char *what = argv[1];
	long ops = std::atol(argv[2]);
	std::uint64_t start_ns = cpu_ns();

	if (!std::strcmp(what, "yield_2"))
		yields(ops, 2);
	else if (!std::strcmp(what, "yield_1000"))
		yields(ops, 1000);
	else if (!std::strcmp(what, "create_join"))
		creations(ops);
	else if (!std::strcmp(what, "ping_pong"))
		round_trips(ops);
	else if (!std::strcmp(what, "switch"))
		bare_switches(ops);
	else
		return 2;
	std::printf("{\"ns\": %.2f}\n", double(cpu_ns() - start_ns) / double(ops));
	return 0;
}
