package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// address returns an address to listen at.
func address(t *testing.T) string {
	t.Helper()
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + ports[0]
}

// listens returns the address at which the agent serves metrics and health.
func (a *agent) listens() (address string) {
	for _, arg := range a.process.args {
		if text, ok := strings.CutPrefix(arg, "--listen="); ok {
			address = text
		}
	}
	return address
}

// scrape returns the agent's answer to a GET, over a new connection.
func (a *agent) scrape(ctx context.Context, path string) (status int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.listens()+path, nil)
	if err != nil {
		return 0, "", err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

// metric returns the value of one of the agent's metrics.
func (a *agent) metric(t *testing.T, name string) (value float64) {
	t.Helper()
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		status, text, err := a.scrape(ctx, "/metrics")
		if err != nil {
			return err
		}
		_, rest, ok := strings.Cut(text, "\n"+name+" ")
		if !ok {
			return fmt.Errorf("status %d, no metric %s", status, name)
		}
		word, _, _ := strings.Cut(rest, "\n")
		value, err = strconv.ParseFloat(word, 64)
		return err
	}, a.process); err != nil {
		t.Fatal(err)
	}
	return value
}
