export const { crypto } = globalThis;
export default { crypto };
