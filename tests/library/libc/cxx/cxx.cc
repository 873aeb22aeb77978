// The standard library of C++: exceptions, also across threads; locks; thread-local objects; streams; files in the
// folder that is the argument.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <future>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <queue>
#include <regex>
#include <set>
#include <shared_mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace fs = std::filesystem;

static void fail(int line, const char *condition)
{
	std::cerr << __FILE__ << ':' << line << ": false: " << condition << std::endl;
	std::exit(1);
}

#define CHECK(...) \
	((__VA_ARGS__) ? void() : fail(__LINE__, #__VA_ARGS__))

static std::atomic<int> unwound, ended;

struct Guard {
	~Guard() { unwound++; }
};

struct Local {
	int value = 7;
	~Local() { ended++; }
};
static thread_local Local local;

struct Base {
	virtual ~Base() = default;
};
struct Derived : Base {};

[[gnu::noinline]] static void deep(int depth)
{
	Guard guard;
	if (!depth) throw std::out_of_range("at the bottom");
	deep(depth - 1);
}

static void exceptions()
{
	try {
		deep(100);
		CHECK(!"returned");
	} catch (const std::exception &error) {
		std::cout << error.what() << ", " << unwound << " unwound\n";
	}
	// From a thread to the one that waits, with another exception inside.
	auto result = std::async(std::launch::async, [] {
		try {
			deep(10);
		} catch (...) {
			std::throw_with_nested(std::runtime_error("in a thread"));
		}
		return 1;
	});
	try {
		result.get();
		CHECK(!"returned");
	} catch (const std::runtime_error &error) {
		try {
			std::rethrow_if_nested(error);
		} catch (const std::out_of_range &inner) {
			std::cout << error.what() << ": " << inner.what() << '\n';
		}
	}
	std::unique_ptr<Base> base = std::make_unique<Derived>();
	CHECK(dynamic_cast<Derived *>(base.get()) && typeid(*base) == typeid(Derived));
	try {
		(void)dynamic_cast<Derived &>(*std::make_unique<Base>());
		CHECK(!"cast");
	} catch (const std::bad_cast &) {
	}
	// Many threads throw at once.
	std::vector<std::thread> threads;
	std::atomic<int> caught = 0;
	for (int i = 0; i < 8; i++)
		threads.emplace_back([&] {
			for (int round = 0; round < 500; round++)
				try {
					deep(round % 20);
				} catch (const std::out_of_range &) {
					caught++;
				}
		});
	for (auto &thread : threads) thread.join();
	CHECK(caught == 4000);
	CHECK(std::uncaught_exceptions() == 0);
}

static void threads()
{
	std::mutex mutex;
	std::condition_variable changed;
	std::queue<int> queue;
	long sum = 0;
	std::thread consumer([&] {
		for (int left = 3000; left; left--) {
			std::unique_lock lock(mutex);
			changed.wait(lock, [&] { return !queue.empty(); });
			sum += queue.front();
			queue.pop();
		}
	});
	std::vector<std::thread> producers;
	for (int number = 0; number < 3; number++)
		producers.emplace_back([&, number] {
			local.value += number;
			for (int i = 0; i < 1000; i++) {
				std::lock_guard lock(mutex);
				queue.push(i);
				changed.notify_one();
			}
			CHECK(local.value == 7 + number);
		});
	for (auto &producer : producers) producer.join();
	consumer.join();
	CHECK(local.value == 7 && ended == 3 && sum == 3 * 499500);

	std::once_flag once;
	std::shared_mutex shared;
	std::recursive_timed_mutex timed;
	int calls = 0;
	std::call_once(once, [&] { calls++; });
	std::call_once(once, [&] { calls++; });
	CHECK(calls == 1 && shared.try_lock_shared() && shared.try_lock_shared() && !shared.try_lock());
	CHECK(timed.try_lock_for(std::chrono::milliseconds(1)) && timed.try_lock());
	std::unique_lock lock(mutex);
	auto start = std::chrono::steady_clock::now();
	CHECK(changed.wait_for(lock, std::chrono::milliseconds(10)) == std::cv_status::timeout);
	CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(10));
	std::promise<std::string> promise;
	std::thread giver([&] { promise.set_value("a promise"); });
	std::cout << promise.get_future().get() << ", sum " << sum << '\n';
	giver.join();
	CHECK(std::thread::hardware_concurrency() > 0);
}

static void streams()
{
	std::ostringstream text;
	text << std::hex << std::showbase << 255 << ' ' << std::dec << std::setprecision(10) << 1.0 / 3 << ' ' << std::setw(6)
	     << std::setfill('*') << 42 << ' ' << std::boolalpha << true;
	std::cout << text.str() << '\n';
	std::istringstream numbers("3 1 4 1 5 9 2 6 x");
	std::multiset<int> set;
	for (int number; numbers >> number;) set.insert(number);
	for (int number : set) std::cout << number << ' ';
	CHECK(std::stod("2.5e3") == 2500 && std::to_string(-17) == "-17");
	std::map<std::string, int> words;
	std::string line = "the quick fox and the lazy dog and the end";
	std::regex word("[a-z]+");
	for (std::sregex_iterator next(line.begin(), line.end(), word), end; next != end; ++next) words[next->str()]++;
	std::cout << words["the"] << words["and"] << words["fox"] << '\n';
	CHECK(std::locale().name() == "C");
	std::wostringstream wide;
	wide << L"wide " << 5;
	CHECK(wide.str() == L"wide 5");
}

static void files(const fs::path &folder)
{
	fs::current_path(folder);
	fs::remove_all("tree");
	CHECK(fs::create_directories("tree/a/b") && !fs::create_directory("tree/a"));
	{
		std::ofstream file("tree/a/file");
		for (int i = 0; i < 1000; i++) file << i << '\n';
		CHECK(file.flush());
	}
	fs::copy("tree/a", "tree/c", fs::copy_options::recursive);
	fs::rename("tree/c/file", "tree/c/b/moved");
	fs::create_symlink("../a/file", "tree/c/link");
	fs::resize_file("tree/a/file", 100);
	CHECK(fs::file_size("tree/c/b/moved") == 3890 && fs::file_size("tree/c/link") == 100);
	CHECK(fs::read_symlink("tree/c/link") == "../a/file" && fs::equivalent("tree/c/link", "tree/a/file"));
	CHECK(fs::canonical("tree/c/../a/file").filename() == "file" && fs::is_directory("tree"));
	fs::permissions("tree/a/file", fs::perms::owner_read);
	CHECK(fs::status("tree/a/file").permissions() == fs::perms::owner_read);
	std::set<std::string> names;
	for (const auto &entry : fs::recursive_directory_iterator("tree")) names.insert(entry.path());
	for (const auto &name : names) std::cout << name << ' ';
	std::ifstream back("tree/c/b/moved");
	std::vector<int> numbers{std::istream_iterator<int>(back), {}};
	std::cout << std::accumulate(numbers.begin(), numbers.end(), 0) << '\n';
	std::error_code error;
	CHECK(!fs::exists("none") && fs::file_size("none", error) == static_cast<std::uintmax_t>(-1));
	CHECK(error == std::errc::no_such_file_or_directory);
	try {
		fs::remove("tree");
		CHECK(!"removed");
	} catch (const fs::filesystem_error &refused) {
		CHECK(refused.code() == std::errc::directory_not_empty && refused.path1() == "tree");
	}
	CHECK(fs::space(".").capacity > 0 && fs::last_write_time("tree").time_since_epoch().count() != 0);
	std::cout << fs::remove_all("tree") << " removed\n";
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	std::at_quick_exit([] {});
	std::atexit([] { std::cout << "at exit" << std::endl; });
	exceptions();
	threads();
	streams();
	files(argv[1]);
	return 4;
}
