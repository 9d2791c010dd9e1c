package cluster

// EndOfLines is where AuditMark marks a log.
var EndOfLines = endOfLines
