// A host without Python: the gradient of MaxPool2dWithIndices in loops, served by the protocol of docs/reference/host.md.
//
//     g++ -O2 -std=c++17 -ffp-contract=off host.cpp -o host
//     POOLPROOF_BOARD_LOOPS_PYTHON=$PWD/host pytest --pyargs poolproof.suites --backend board:loops
//
// Replace `scatter` by what calls your library, and list in `describe` what it has.

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

// JSON, as far as the judge writes it

struct Json {
    enum { null, boolean, number, text, list, object } kind = null;
    long long integer = 0;
    std::string string;
    std::vector<Json> items;
    std::map<std::string, Json> fields;

    bool has(const std::string& name) const { return fields.count(name) != 0; }
    const Json& operator[](const std::string& name) const { return fields.at(name); }
};

class Reader {
public:
    explicit Reader(const std::string& data) : at(data.c_str()) {}

    Json value() {
        Json read;
        skip();
        if (*at == '{') {
            read.kind = Json::object;
            between('{', '}', [&] {
                std::string name = value().string;
                expect(':');
                read.fields[name] = value();
            });
        } else if (*at == '[') {
            read.kind = Json::list;
            between('[', ']', [&] { read.items.push_back(value()); });
        } else if (*at == '"') {
            read.kind = Json::text;
            for (++at; *at != '"'; ++at) {
                if (*at == '\\') ++at;  // the judge's names need no escapes
                if (*at == 0) throw std::runtime_error("a text does not end");
                read.string += *at;
            }
            ++at;
        } else if (word("true") || word("false")) {
            read.kind = Json::boolean;
            read.integer = at[-2] == 'u';
        } else if (!word("null")) {
            char* end = nullptr;
            read.kind = Json::number;
            read.integer = std::strtoll(at, &end, 10);
            if (end == at) throw std::runtime_error("no JSON");
            at = end;
        }
        return read;
    }

private:
    const char* at;

    void skip() {
        while (*at == ' ') ++at;
    }

    void expect(char wanted) {
        skip();
        if (*at++ != wanted) throw std::runtime_error(std::string("no ") + wanted);
    }

    bool word(const char* wanted) {
        size_t length = std::strlen(wanted);
        if (std::strncmp(at, wanted, length) != 0) return false;
        at += length;
        return true;
    }

    template <class Item> void between(char first, char last, Item item) {
        expect(first);
        for (skip(); *at != last; skip()) {
            item();
            skip();
            if (*at == ',') ++at;
            else if (*at != last) throw std::runtime_error("neither a comma nor an end");
        }
        ++at;
    }
};

// Frames

static bool transfer(int socket, char* data, size_t size, ssize_t (*move)(int, char*, size_t)) {
    while (size > 0) {
        ssize_t moved = move(socket, data, size);
        if (moved <= 0) return false;
        data += moved;
        size -= moved;
    }
    return true;
}

static ssize_t take(int socket, char* data, size_t size) { return read(socket, data, size); }
static ssize_t give(int socket, char* data, size_t size) { return write(socket, data, size); }

static bool receive(int socket, std::string& message) {
    uint32_t size = 0;  // little-endian, as this machine
    if (!transfer(socket, reinterpret_cast<char*>(&size), 4, take) || size > (1u << 24)) return false;
    message.resize(size);
    return transfer(socket, &message[0], size, take);
}

static bool send(int socket, std::string message) {
    uint32_t size = message.size();
    message.insert(0, reinterpret_cast<const char*>(&size), 4);
    return transfer(socket, &message[0], message.size(), give);
}

// Tensors in the memory that is shared with the judge

static char* arena = nullptr;

struct Tensor {
    char* start;  // of the element at (0, 0, ...)
    std::vector<long long> shape, strides;
    std::string dtype;

    explicit Tensor(const Json& told) : dtype(told["dtype"].string) {
        for (const Json& length : told["shape"].items) shape.push_back(length.integer);
        for (const Json& stride : told["strides"].items) strides.push_back(stride.integer);
        long long offset = told.has("offset") ? told["offset"].integer : 0;
        start = arena + told["at"].integer + told["guard"].integer + offset * size();
    }

    long long size() const { return dtype == "int64" ? 8 : 4; }

    char* element(const std::vector<long long>& place) const {
        long long elements = 0;
        for (size_t axis = 0; axis < place.size(); ++axis) elements += place[axis] * strides[axis];
        return start + elements * size();
    }

    // The places of all elements, in row-major order.
    template <class Visit> void each(Visit visit) const {
        std::vector<long long> place(shape.size(), 0);
        for (long long length : shape)
            if (length == 0) return;
        for (size_t axis = shape.size(); axis != 0;) {
            visit(place);
            for (axis = shape.size(); axis > 0 && ++place[axis - 1] == shape[axis - 1]; --axis) place[axis - 1] = 0;
        }
    }
};

// The operator

static void scatter(const Tensor& gradient, const Tensor& indices, const Tensor& out) {
    out.each([&](const std::vector<long long>& place) { *reinterpret_cast<float*>(out.element(place)) = 0; });
    long long width = out.shape.back();
    gradient.each([&](std::vector<long long> place) {
        const char* stored = indices.element(place);
        float value = *reinterpret_cast<const float*>(gradient.element(place));
        long long cell = indices.size() == 8 ? *reinterpret_cast<const int64_t*>(stored)
                                             : *reinterpret_cast<const int32_t*>(stored);
        place[place.size() - 2] = cell / width;
        place[place.size() - 1] = cell % width;
        *reinterpret_cast<float*>(out.element(place)) += value;
    });
}

// Requests

static const char* const OPERATOR = "MaxPool2dWithIndicesBackward";
static const char* const DECLARED =
    "{\"accumulation\":\"acc32\",\"forward_rule\":\"first\",\"is_deterministic\":true,\"route\":\"\"}";

static std::string describe() {
    std::string name = std::string("[\"") + OPERATOR + "\",\"float32\",";
    return "{\"environment\":{\"host\":\"loops in C++\"},"
           "\"unsupported\":[" + name + "\"int32\",null]," + name + "\"int64\",null]]}";
}

static std::string run(const Json& call) {
    if (call["operator"].string != OPERATOR) throw std::runtime_error("there is no such operator");
    const Json& tensors = call["tensors"];
    Tensor gradient(tensors["grad_output"]), indices(tensors["indices"]), out(tensors["grad_input"]);
    auto started = std::chrono::steady_clock::now();
    scatter(gradient, indices, out);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
    return "{\"status\":\"completed\",\"seconds\":" + std::to_string(seconds.count()) + "}";
}

static std::string run_all(const Json& request) {
    std::string outcomes;
    for (const Json& call : request["calls"].items) {
        arena[request["begun"].integer] += 1;
        outcomes += (outcomes.empty() ? "" : ",") + run(call);
    }
    bool declares = request.has("declare") && request["declare"].integer;
    return "{\"outcomes\":[" + outcomes + "]" + (declares ? std::string(",\"declared\":") + DECLARED : "") + "}";
}

static std::string answer(const Json& request) {
    const std::string& wanted = request["do"].string;
    if (wanted == "describe") return "{\"done\":" + describe() + "}";
    if (wanted == "run") return "{\"done\":" + run_all(request) + "}";
    if (wanted == "declare") return std::string("{\"done\":{\"declared\":") + DECLARED + "}}";
    if (wanted == "memory") return "{\"done\":{\"bytes\":null}}";
    throw std::runtime_error("there is no such request");
}

int main(int, char** arguments) {
    int socket = std::atoi(arguments[2]), file = std::atoi(arguments[3]);
    void* mapped = mmap(nullptr, std::strtoull(arguments[4], nullptr, 10), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) return 1;
    arena = static_cast<char*>(mapped);
    for (std::string message; receive(socket, message);) {
        std::string reply;
        try {
            reply = answer(Reader(message).value());
        } catch (const std::exception& error) {
            reply = std::string("{\"raised\":{\"type\":\"exception\",\"text\":\"") + error.what() + "\"}}";
        }
        if (!send(socket, reply)) return 1;
    }
    return 0;
}
