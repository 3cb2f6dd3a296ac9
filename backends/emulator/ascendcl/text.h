// Joins values into one message.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace emulator {

template <class Value>
std::ostream& operator<<(std::ostream& stream, const std::vector<Value>& values) {
    stream << '[';
    for (size_t i = 0; i < values.size(); ++i) stream << (i == 0 ? "" : ", ") << values[i];
    return stream << ']';
}

template <class... Parts>
std::string text(const Parts&... parts) {
    std::ostringstream stream;
    (stream << ... << parts);
    return stream.str();
}

}  // namespace emulator
