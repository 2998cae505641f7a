export const prefix = 'u-';
