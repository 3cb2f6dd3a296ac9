#include "cores.h"

#include <atomic>
#include <thread>
#include <vector>

namespace emulator {
namespace {

constexpr int64_t kMostThreads = 4;

Range piece(int64_t number, int64_t size, int64_t length) {
    return {number * size, std::min((number + 1) * size, length)};
}

int64_t thread_count(int64_t cores) {
    const auto available = std::max<int64_t>(2, std::thread::hardware_concurrency());
    return std::min({cores, available, kMostThreads});
}

}  // namespace

Grid::Grid(int64_t planes, int64_t planes_per_block, const std::array<int64_t, kAxes>& lengths,
           const std::array<int64_t, kAxes>& tile)
    : planes_(planes), planes_per_block_(planes_per_block), lengths_(lengths), tile_(tile) {}

Range Grid::planes(int64_t block) const { return piece(block, planes_per_block_, planes_); }

Box Grid::box(int64_t tile) const {
    Box box;
    for (int axis = kAxes - 1; axis >= 0; --axis) {
        box[axis] = piece(tile % tiles(axis), tile_[axis], lengths_[axis]);
        tile /= tiles(axis);
    }
    return box;
}

void run_on_cores(int64_t units, int64_t cores, bool concurrent, const std::function<void(Range)>& body) {
    const int64_t share = ceil_divide(units, std::max<int64_t>(1, cores));
    const int64_t used = share == 0 ? 0 : ceil_divide(units, share);
    if (!concurrent || used < 2) {
        for (int64_t core = 0; core < used; ++core) body(piece(core, share, units));
        return;
    }
    static std::atomic<int64_t> launches{0};
    const int64_t first = launches++;
    std::atomic<int64_t> next{0};
    const auto work = [&] {
        for (int64_t turn = next++; turn < used; turn = next++) body(piece((first + turn) % used, share, units));
    };
    std::vector<std::thread> threads;
    for (int64_t i = 1; i < thread_count(used); ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
}

}  // namespace emulator
