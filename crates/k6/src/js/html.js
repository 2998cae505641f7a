const host = globalThis.__k6;

export const parseHTML = (text) => host.parseHTML(text, "");
export default { parseHTML };
