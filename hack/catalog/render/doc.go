// Package render turns a catalog template into a file-based catalog, with OLM's own program opm, and joins the channels
// that the semver template makes for each major version into the three that users subscribe to.
//
// What belongs here: running opm without touching the user's settings, and the channels. What does not: which versions
// are offered, which the template says, and where the catalog is kept.
package render
