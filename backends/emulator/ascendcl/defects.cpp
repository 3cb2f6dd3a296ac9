#include "defects.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "environment.h"
#include "errors.h"

namespace emulator {
namespace {

struct Row {
    const char* id;
    const char* group;
    const char* clause;
    const char* trigger;
    const char* severity;
    int difficulty;
    const char* products;  // separated by spaces
};

constexpr Row kRows[] = {
#define DEFECT(id, group, clause, trigger, severity, difficulty, products) \
    {#id, group, clause, trigger, severity, difficulty, products},
#include "seeds.def"
#undef DEFECT
};

size_t row_of(const std::string& id) {
    for (size_t row = 0; row < kDefects; ++row) {
        if (id == kRows[row].id) return row;
    }
    fatal(text("POOLPROOF_EMULATOR_DEFECTS names the unknown defect ", id));
}

std::array<bool, kDefects> read_switches() {
    std::array<bool, kDefects> switches{};
    std::istringstream ids(environment("POOLPROOF_EMULATOR_DEFECTS", ""));
    for (std::string id; std::getline(ids, id, ',');) switches[row_of(id)] = true;
    return switches;
}

std::string as_json() {
    std::string rows;
    for (const Row& row : kRows) {
        rows += text(rows.empty() ? "" : ",\n", R"({"id": ")", row.id, R"(", "class": ")", row.group,
                     R"(", "clause": ")", row.clause, R"(", "trigger": ")", row.trigger, R"(", "severity": ")",
                     row.severity, R"(", "difficulty": )", row.difficulty, R"(, "products": ")", row.products, R"("})");
    }
    return text("[", rows, "]");
}

}  // namespace

const std::array<bool, kDefects> defect_switches = read_switches();
const bool has_defects = std::find(defect_switches.begin(), defect_switches.end(), true) != defect_switches.end();

}  // namespace emulator

// The table of defects as JSON: a list of {id, class, clause, trigger, severity, difficulty, products}.
extern "C" const char* poolproof_emulator_defects() {
    static const std::string json = emulator::as_json();
    return json.c_str();
}
