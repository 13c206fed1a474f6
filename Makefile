# make help lists the targets.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  = -s -w -X main.version=$(VERSION)
BINARY   = bin/gdr-features
EXAMPLE  = testdata/machines/dell-xe9680-h100.txt
FUZZTIME ?= 20s

GOLANGCI_LINT = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.11.0
# Prints what go test -v prints, and at the end what failed, with the output of that test alone.
GOTESTSUM     = gotest.tools/gotestsum@v1.13.0 --format standard-verbose --hide-summary skipped --

# Flags of tests that depend on more than the cache of go test knows. The limit is for a test that hangs, not for a
# slow machine.
UNCACHED = -count=1 -timeout 60m

export CGO_ENABLED = 0

.PHONY: help
help:
	@echo 'make TARGET (what it needs is in parentheses; hack/check.sh lists more checks)'
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/; s/^/  /' | expand -t 14

.PHONY: build
build: ## build the programs into bin/
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/gdr-features ./cmd/gdr-features-agent ./cmd/kubectl-gdr

.PHONY: build-all
build-all: ## build for every platform into bin/OS-ARCH/
	@./hack/build-all.sh '$(LDFLAGS)'

.PHONY: run
run: build ## show this machine; if it has no GPU, show an example machine too
	@./hack/run.sh $(BINARY) $(EXAMPLE)

.PHONY: test
test: ## run the tests (2 min)
	@$(CHECK) vet -tags vm ./test/vm # it runs by hand or in .ci/run full, and must compile
	@GO='$(GO)' ./hack/test.sh

# As hack/test.sh builds, without the race detector: what one has compiled the other takes.
CHECK = GOFLAGS="$${GOFLAGS:--trimpath}" $(GO)

.PHONY: check
check: ## after every step: build, vet, quick tests (2 min)
	$(CHECK) vet ./...
	$(CHECK) vet -tags vm ./test/vm
	@started=$$(date +%s); GOGC=400 $(CHECK) test -short -vet=off -timeout 60m ./... && echo "tests took $$(( $$(date +%s) - started )) s"

# Modules of their own, and the build tags of their tests.
MODULES = hack/release examples/nfd-worker examples/levels test/chart test/monitoring test/browser test/dra test/e2e
TAGS    = image,release,packages,vm,faults,nccl,frameworks,worker,slurm,fleet,gpuoperator,compatibility,userspace,mutate

.PHONY: lint
lint: ## run the linters and check go.mod, in every module (3 min)
	$(GO) mod tidy -diff
	$(GO) list -m all > /dev/null
	$(GO) run $(GOLANGCI_LINT) run --build-tags $(TAGS) ./...
	set -e; for module in $(MODULES); do \
		$(GO) -C $$module mod tidy -diff; \
		(cd $$module && $(GO) run $(GOLANGCI_LINT) run --config '$(CURDIR)/.golangci.yml' --build-tags $(TAGS) ./...); \
	done

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME, 20s (15 min)
	@./hack/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: ## measure CPU, memory and size (1 min; gcc, lstopo)
	$(GO) run ./bench $(BENCHFLAGS)

GOLDEN = bin/.golden
.PHONY: golden
golden: ## update golden files, manual pages and examples in docs
	@mkdir -p bin && touch '$(GOLDEN)'
	UPDATE=1 $(CHECK) test ./cmd/gdr-features -run 'Test(Golden|Terminal|Man|Pages$$|CommandsPage)'
	UPDATE=1 $(CHECK) test ./internal/monitor ./internal/fleet/... ./internal/rooms/proof ./internal/findings -run 'Test(Metrics|Page|ScriptText|Evidence|Fill)$$'
	@git ls-files -mdo --exclude-standard | while read -r file; do if [ ! -e "$$file" ] || [ "$$file" -nt '$(GOLDEN)' ]; then echo "$$file"; fi; done; rm '$(GOLDEN)'

PREFIX ?= /usr/local
.PHONY: install
install: build ## install below DESTDIR and PREFIX, /usr/local
	@./hack/install.sh '$(DESTDIR)$(PREFIX)'

.PHONY: e2e
e2e: ## test with a real NFD and API server (13 min; buildah, skopeo, rpm)
	@./test/release/build.sh one
	@./test/e2e/build.sh $(E2EFLAGS)
	cd test/e2e && $(GO) run $(GOTESTSUM) $(UNCACHED) $(E2EFLAGS) -parallel 8 ./...

.PHONY: e2e-vm
e2e-vm: ## test on a real kernel in QEMU (8 min; qemu-system-x86, gcc)
	@./test/e2e/build.sh
	@./test/vm/build.sh
	$(GO) test $(UNCACHED) -v -tags vm ./test/vm

.PHONY: image
image: ## build the image for amd64 and arm64 (buildah)
	@./hack/image.sh bin/gdr-features-image.tar '$(VERSION)' '$(LDFLAGS)'

IMAGE ?= registry.example.com/gdr-features
URL   ?= https://example.com/gdr-features
.PHONY: release
release: ## build a release: VERSION= IMAGE= URL= SIGN_KEY= (buildah)
	@echo 'building the program that builds releases ...' >&2
	$(GO) build -C hack/release -o '$(CURDIR)/bin/release' .
	./bin/release -version '$(VERSION)' -image '$(IMAGE)' -url '$(URL)' -revision '$(REVISION)' -sign-key '$(SIGN_KEY)'

.PHONY: nccl
nccl: ## compare with NCCL's own code, NCCL_ORACLE=PROGRAM (20 min)
	NCCL_ORACLE='$(abspath $(NCCL_ORACLE))' $(GO) test $(UNCACHED) -tags nccl -v ./test/nccl

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist
