# Two commands: `make demo` and `make test`. Everything else is a convenience.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo build dist test test-long test-needs matrix web fuzz bench-airline bench-connections bench-driver bench-ingest bench-limit bench-newsfeed bench-cube bench-queue bench-trade bench-truth clean

help: ## what there is
	@echo "Tidemark: how much load a system really holds, and whether it lost anything."
	@echo
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | awk -F'|' '{printf "%-22s %s\n", $$1, $$2}'

demo: build ## build, then drive the airline on this machine for half a minute and show what it holds
	@./target/release/tidemark run airline

build: ## the program: target/release/tidemark
	@./tests/needs build
	cargo build --release --locked --package tidemark

dist: ## programs for any Linux with glibc 2.28 or newer, as archives and Debian packages, and one with musl, in target/dist
	@./dist/build

test-needs:
	@./tests/needs compile
	@./tests/needs test

test: ## install what the tests need, then pass every check
	@./tests/needs compile
	@./tests/run

test-long: test-needs ## what `make test` leaves out: other features, suites of others (Spark among them), every way to break stores
	@./tests/long

matrix: ## break the message intake, the news feed and their stores in every way under load; is anything lost? (an hour)
	@./tests/matrix

web: ## build the pages (web/dist) from their sources
	@./tests/needs web
	@./tests/web-build

fuzz: ## each fuzz target for a minute (needs cargo-fuzz)
	@./fuzz/run

bench-airline: build ## throughput of the airline's full mix, system and driver pinned apart
	@./bench/airline/run

bench-connections: build ## the driver's memory for 10 to 50,000 connections
	@./bench/connections/run

bench-driver: ## what load generators cost, ours and the others, side by side (bench/peers gets them)
	@./bench/driver/run

bench-ingest: ## what the message intake holds for five minutes, every message looked for; and a flood
	@./bench/ingest/run

bench-limit: ## is the limit of a queue that is known found? in virtual time, then over sockets
	@./bench/limit/run made-up
	@./bench/limit/run

bench-newsfeed: ## what the news feed holds under its published load, every post looked for
	@./bench/newsfeed/run

bench-cube: ## how long a cube over an hour with ten million operations takes
	@./bench/cube/run

bench-queue: ## the batching queue and its streams beside seven others, on two cores
	@./bench/queue/run

bench-trade: ## calls/s of the trade service, as REST and over WebSockets
	@./bench/trade/run

bench-truth: ## who tells the truth about a server that misbehaves
	@./bench/truth/run

clean: ## remove what was built and every run kept in runs/
	cargo clean
	rm -rf runs
