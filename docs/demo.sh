#!/usr/bin/env bash
# A control plane, a fleet of simulated GPUs, and the real scheduler deciding over it.
# Needs `kubectl-ghost` on PATH; everything it makes is gone at the end unless KEEP=1.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=${NAME:-ghost-demo}

bold='' plain=''
[ -t 1 ] && bold=$'\033[1m' plain=$'\033[0m'
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
run() { printf '$ %s\n' "$*"; "$@"; }
finish() {
  if [ "${KEEP:-}" = 1 ]; then
    say "The cluster \"$name\" is still there; delete it with: kubectl ghost cluster down --name $name"
  else
    kubectl-ghost cluster down --name "$name" >/dev/null
  fi
}
trap finish EXIT

# Pods of a Deployment that run, and the one that cannot.
await() {
  for _ in $(seq 300); do
    ready=$(kubectl get deployment "$1" -o 'jsonpath={.status.readyReplicas}')
    refused=$(kubectl get pods -l "app=$1" -o 'jsonpath={.items[*].status.conditions[?(@.reason=="Unschedulable")].reason}')
    [ "$ready" = 32 ] && [ -n "$refused" ] && return
    sleep 0.2
  done
  echo "deployment $1 did not get 32 pods running and one refused" >&2
  kubectl get pods -l "app=$1" -o wide >&2
  return 1
}

say "A real control plane: etcd, API server, controller manager, scheduler, kwok"
eval "$(kubectl-ghost cluster up --name "$name")"

say "Four nodes with eight H100 each, offered as DRA devices; and four with eight A100, as nvidia.com/gpu"
run kubectl ghost add-pool
run kubectl ghost add-pool classic --gpu a100 --advertise device-plugin
run kubectl get nodes

say "32 pods that claim one GPU each, 32 that ask for nvidia.com/gpu, and one more of each"
run kubectl apply -f "$here/examples/claims.yaml" -f "$here/examples/nvidia-gpu.yaml"
run kubectl scale deployment claims classic --replicas=33
await claims
await classic
run kubectl get deployments

say "Who holds what, and what the scheduler says to the two that wait"
run kubectl ghost status
