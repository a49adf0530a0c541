// Before the first paint: no flash of the other theme.
document.documentElement.classList.remove("no-js");
try {
  const theme = localStorage.getItem("msmq-bridge.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* storage may be forbidden; then the system decides */ }
