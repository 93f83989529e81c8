#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The tandem authors
#
# agent.sh [OPTION...] HOST COMMAND...: stands in for ssh. The command runs on
# the test host of that name or address; any other name is this host. It does
# not outlive the agent.

while [ $# -gt 0 ]; do
	case $1 in
	-[bcDEeFIiJLlmOopQRSWw]) shift 2 ;;
	-*) shift ;;
	*) break ;;
	esac
done
host=$1
shift
enter=()
case ${host#*@} in
host2 | "$TANDEM_HOST2_ADDRESS")
	enter=(nsenter "--net=$TANDEM_HOST2_NET" "--uts=$TANDEM_HOST2_UTS")
	;;
esac
exec "${enter[@]}" setpriv --pdeathsig KILL bash -c "$*"
