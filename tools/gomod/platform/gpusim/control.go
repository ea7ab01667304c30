package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// control serves what a test needs: GET /devices, and PUT /devices/<id or index>/health with Healthy or Unhealthy as the body.
func control(f *fleet) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /devices", func(writer http.ResponseWriter, _ *http.Request) {
		devices, _ := f.snapshot()
		writer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(writer).Encode(devices)
	})
	mux.HandleFunc("PUT /devices/{device}/health", func(writer http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(io.LimitReader(request.Body, 64))
		health := strings.TrimSpace(string(body))
		if err != nil || (health != api.Healthy && health != api.Unhealthy) {
			http.Error(writer, fmt.Sprintf("health is %q or %q, not %q", api.Healthy, api.Unhealthy, health), http.StatusBadRequest)
			return
		}
		if name := request.PathValue("device"); !f.setHealth(name, health) {
			http.Error(writer, fmt.Sprintf("no device %q", name), http.StatusNotFound)
		}
	})
	return mux
}
